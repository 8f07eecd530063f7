"""Compare tokenizers, encodings and document orders for language-model pretraining, all else being equal."""

__version__ = "0.1.0"
