"""Tokenizers as word segmenters on a corpus segmented by hand: Table 1 of arXiv 2506.15889."""
