"""Maps over shards on a Ray cluster."""
