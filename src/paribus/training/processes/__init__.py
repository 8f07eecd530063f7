"""Several processes that train one model, on one node or more."""
