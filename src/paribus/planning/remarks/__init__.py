"""What is said of the runs of a plan together, beside their figures."""
