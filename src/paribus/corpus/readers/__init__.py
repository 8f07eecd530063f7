"""One reader a file format; each yields records and problems in the order of the file."""
