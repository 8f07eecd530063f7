"""Tokenizers: training, encoding, decoding, saving, statistics."""

from paribus.tokenization.tokenizer import Tokenizer

__all__ = ["Tokenizer"]
