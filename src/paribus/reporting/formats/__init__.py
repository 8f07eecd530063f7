"""A written report, in each of its formats."""
