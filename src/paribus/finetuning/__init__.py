"""Fine-tuning a trained model on tasks, and scoring it on them."""
