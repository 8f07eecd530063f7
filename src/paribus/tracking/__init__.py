"""The event file of a run, which is the truth, and MLflow, which shows it."""
