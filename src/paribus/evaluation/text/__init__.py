"""Bits per byte of texts, which tokenizers do not differ in."""
