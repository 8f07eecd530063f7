"""The comparison as numbers: rows by factors, columns by measure, cells that know their runs."""
