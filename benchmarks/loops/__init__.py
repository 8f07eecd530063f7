"""What `benchmarks/training.py` measures: training loops that do the same steps with the same model and batches."""
