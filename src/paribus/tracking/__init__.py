"""The event file of a run, which is the truth, and MLflow, which shows it.

A run appends its parameters, numbers and states to a file (`events`); it waits for a tracker at its end alone, and no
longer than it is told. One process an output root reads these files and repeats them to MLflow (`mlflow`), so that a
server which is slow, full or gone harms no run. That process is in `sync`, as is the verb that sends later whatever
MLflow lacks; `destination` says where it is. Every request may be repeated without effect, and what was sent is
remembered after it was accepted, so nothing is lost and nothing is shown twice.
"""
