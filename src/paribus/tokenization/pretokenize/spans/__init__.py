"""Pre-tokens that follow the entropy of the text: spans of characters, and boundaries where a model is uncertain."""
