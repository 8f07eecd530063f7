"""The contract between a stage and the pipeline: what a stage is, and what its function receives."""
