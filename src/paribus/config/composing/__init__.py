"""What Hydra makes of the overrides of one command: files that are read once, and choices that are composed once."""
