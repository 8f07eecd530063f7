"""Continual pre-training: find a checkpoint, see whether it fits the run, and take its weights.

`locate`, `agreement`, `files` and `preflight` import nothing heavy; a plan uses them.
"""
