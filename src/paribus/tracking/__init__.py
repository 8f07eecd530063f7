"""The event file of a run, which is the truth, and MLflow, which shows it.

A run appends its parameters, numbers and states to a file (`events`); it waits for a tracker at its end alone, and no
longer than it is told. One process an
output root (`service`) reads these files and repeats them to MLflow (`replay`, `mlflow_sink`), so that a server which
is slow, full or gone harms no run; `sync` sends later whatever it lacks. Every request may be repeated without effect,
and what was sent is remembered after it was accepted, so nothing is lost and nothing is shown twice.
"""
