"""What a training keeps: checkpoints that appear whole, from which it goes on exactly, and its metrics."""
