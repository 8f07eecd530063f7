"""True if a difference is more than luck: of items, of seeds, of both."""
