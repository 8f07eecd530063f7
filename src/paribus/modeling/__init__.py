"""Families of models: exact sizes without building them (`counts`), seeded weights and checkpoints (`build`)."""
