"""The same map over shards, wherever it runs."""
