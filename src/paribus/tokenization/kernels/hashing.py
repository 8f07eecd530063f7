"""Open-addressing tables from one uint64 to another; a key is stored plus one, so zero is an empty slot."""

import numpy as np

from paribus.tokenization.kernels.classes import ALL, ONE, ZERO, function, inline

GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@inline
def find(table, shift, key):
    """Value of `key` in a table of 2^(64 - shift) pairs; ALL where it is not there."""
    wanted = key + ONE
    mask = (ONE << np.uint64(64 - shift)) - ONE
    slot = wanted * GOLDEN >> np.uint64(shift)
    while True:
        found = table[np.int64(slot) * 2]
        if found == wanted:
            return table[np.int64(slot) * 2 + 1]
        if found == ZERO:
            return ALL
        slot = slot + ONE & mask


@function
def put(table, shift, key, value):
    """Add a key, or keep the value that it has; returns its value."""
    wanted = key + ONE
    mask = (ONE << np.uint64(64 - shift)) - ONE
    slot = wanted * GOLDEN >> np.uint64(shift)
    while True:
        found = table[np.int64(slot) * 2]
        if found == wanted:
            return table[np.int64(slot) * 2 + 1]
        if found == ZERO:
            table[np.int64(slot) * 2] = wanted
            table[np.int64(slot) * 2 + 1] = value
            return value
        slot = slot + ONE & mask
