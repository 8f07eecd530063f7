"""The same map over shards, wherever it runs: in this process, in others or on a Ray cluster (`cluster`).

In come a function and items, out come its results in the order of the items, so that no artefact depends on the number
of workers. An exception of an item ends the map and comes back as it was; a worker that is killed
is replaced by the engine that can do so, and ends the map with an InfrastructureError or OutOfMemoryError in the
others. `opening` turns a configuration into an engine.

Also here: which GPUs of a machine a job may use (`gpus`), shared by count among jobs that know nothing of each other.
"""
