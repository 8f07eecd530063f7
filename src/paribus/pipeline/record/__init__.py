"""What is kept of a run: its record, its numbers, how it stands and why it failed."""
