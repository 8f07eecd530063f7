"""The sample of a corpus by which it is told how much text two trainings have in common: known without NumPy."""

SAMPLED = 2**18
"""Bytes of the corpus that are looked at, one in each of as many equal parts; all of a smaller corpus."""
