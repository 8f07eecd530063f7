"""Pretraining: batches that are a pure function of the step, budgets, the loop, and checkpoints that resume exactly."""
