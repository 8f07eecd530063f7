"""Pictures of lines over an amount: losses while training, scores by size, budget, checkpoint and examples."""
