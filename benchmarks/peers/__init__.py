"""The tokenizers that `benchmarks/tokenization.py` measures, and how it measures them."""
