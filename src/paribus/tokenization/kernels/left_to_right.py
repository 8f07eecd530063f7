"""Longest match from the left, WordPiece's encoding (Wu et al. 2016; Song et al. 2021, section 3)."""

import numpy as np

from paribus.native.intrinsics import function
from paribus.tokenization.kernels.trie import longest


@function
def match_left_to_right(model, units, count):
    """Replace `units` by the ranks of their tokens; returns how many, or -1 where a unit is no token."""
    start = left = np.int64(0)
    while start < count:
        rank, length = longest(model, units, start, count)
        if rank < 0:
            return np.int64(-1)
        units[left] = np.int32(rank)
        start += length
        left += 1
    return left
