"""Neighbours by the words that documents share."""
