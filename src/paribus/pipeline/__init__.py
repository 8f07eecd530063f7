"""From configurations to published artefacts and their records: the graph of a run, and the list of its stages."""
