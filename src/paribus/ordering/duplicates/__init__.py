"""Which near duplicates are removed."""
