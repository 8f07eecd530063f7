"""Batches of what a model computes: laid out by their tokens, and halved where memory is short."""
