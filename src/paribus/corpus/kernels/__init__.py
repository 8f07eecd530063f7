"""Compiled loops of the corpus: which runs of words texts have, and how many of them they share."""
