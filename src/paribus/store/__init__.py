"""Content-addressed artefacts on disk: atomic publication, claims between processes, verification."""
