"""An edge as one number: the larger, the heavier the edge, and of equal weights the smaller the document's id."""

import numba
import numpy as np

_HIGHEST = np.uint64(0xFFFFFFFF)
_SIGN = np.uint64(0x80000000)


@numba.njit(inline="always")
def edge_key(bits, document):
    """Key of an edge to a document, from the bits (int32) of its float32 weight."""
    # -0.0 is 0.0.
    word = np.uint64(0) if bits == np.int32(-2147483648) else np.uint64(np.uint32(bits))
    # Unsigned order becomes that of the numbers when all bits of negative ones flip, and the sign of the others.
    flipped = word ^ _HIGHEST if word >= _SIGN else word | _SIGN
    return flipped << np.uint64(32) | (_HIGHEST - np.uint64(document))


@numba.njit(inline="always")
def key_document(key):
    """The document an edge leads to."""
    return np.int64(_HIGHEST - (key & _HIGHEST))


@numba.njit(inline="always")
def key_bits(key):
    """The bits (int32) of the edge's float32 weight."""
    word = key >> np.uint64(32)
    return np.int32(np.uint32(word ^ _SIGN if word >= _SIGN else word ^ _HIGHEST))


@numba.njit(inline="always")
def is_set(bits, place):
    """Whether a bit is set in a bit map of uint64."""
    return (bits[place >> 6] >> np.uint64(place & 63)) & np.uint64(1) != np.uint64(0)
