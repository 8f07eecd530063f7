"""What a training runs on: device, precision, memory, and the largest micro-batch that finds room."""
