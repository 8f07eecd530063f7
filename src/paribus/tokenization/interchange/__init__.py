"""Tokenizers of other libraries, taken and given with identical ids, or refused."""
