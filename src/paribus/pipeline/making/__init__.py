"""Making what a run lacks: each stage in a child process, each artefact once among all processes."""
