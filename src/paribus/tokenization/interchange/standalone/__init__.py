"""A tokenizer of ours for a machine that has transformers and no paribus: one file of Python, and what writes it."""
