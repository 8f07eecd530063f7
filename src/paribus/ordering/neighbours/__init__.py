"""Nearest neighbours of documents."""
