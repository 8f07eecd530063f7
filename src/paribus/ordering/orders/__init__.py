"""The orders of documents, one file each."""
