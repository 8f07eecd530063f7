"""What one step does: attention within documents, loss, dropout, learning rate, weight update."""
