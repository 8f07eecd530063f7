"""The key of a short pre-token, of up to fifteen bytes: its bytes and, in the last, its length, as two words."""

import numpy as np

from paribus.native.intrinsics import function, inline, load64, multiply_high, u8_at

SHORTEST_LONG = 16
LENGTH_SHIFT = np.uint64(56)
FIRST = np.uint64(0x9E3779B97F4A7C15)
SECOND = np.uint64(0xC2B2AE3D27D4EB4F)


@inline
def hash_words(low, high):
    """64 well-mixed bits of a key of two words: both halves of a product of 128 bits, folded."""
    left, right = low ^ FIRST, high ^ SECOND
    return multiply_high(left, right) ^ (left * right)


@function
def keep_tail(text, size, tail):
    """Copy the last sixteen bytes of a text and sixteen zeros to `tail`, so that a key's bytes are there to be read."""
    begin = tail_begin(size)
    for offset in range(16):
        tail[offset] = text[begin + offset] if begin + offset < size else np.uint8(0)
        tail[16 + offset] = np.uint8(0)


@inline
def tail_begin(size):
    """Where in a text its tail begins."""
    return max(size - 16, np.int64(0))


@inline
def short_key(text, tail, size, masks, start, length):
    """Both words of the pre-token at `start`, zeros where it is longer; `text` and `tail` are addresses."""
    # Sixteen bytes are read whatever the length: near the end of the text from a copy that has zeros after it.
    source = u8_at(text if start + 16 <= size else tail - tail_begin(size))
    kept = min(length, np.int64(SHORTEST_LONG))
    low = load64(source, start) & masks[2 * kept]
    high = load64(source, start + 8) & masks[2 * kept + 1]
    return low, high | np.uint64(kept & (SHORTEST_LONG - 1)) << LENGTH_SHIFT
