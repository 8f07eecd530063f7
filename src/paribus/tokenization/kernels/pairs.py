"""Which merge joins two tokens: its priority, its place in the merge list.

Pairs of the first 256 ranks, the bytes, have a table of their own; all others share a hash table of one word an entry:
the two ranks (21 bits each) and the priority plus one (22 bits). What is small stays in the caches.
"""

import numpy as np

from paribus.native.intrinsics import function, inline
from paribus.tokenization.kernels.classes import ONE, ZERO
from paribus.tokenization.kernels.layout import DIRECT_RANKS, PRIORITY_BITS, RANK_BITS

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
NEVER = np.int32(0x7FFFFFFF)
"""Priority of a pair that no merge joins."""
_SHIFT, _RANK = np.uint64(PRIORITY_BITS), np.uint64(RANK_BITS)
_PRIORITY = np.uint64((1 << PRIORITY_BITS) - 1)


@inline
def joined(left, right):
    """The key of a pair."""
    return np.uint64(left) << _RANK | np.uint64(right)


@inline
def priority(direct, pairs, shift, left, right):
    """Priority of the merge of two ranks, or NEVER."""
    if (left | right) < DIRECT_RANKS:
        return direct[np.int64(left) * DIRECT_RANKS + right]
    key = joined(left, right)
    mask = (ONE << np.uint64(64 - shift)) - ONE
    slot = key * GOLDEN >> np.uint64(shift)
    while True:
        entry = pairs[np.int64(slot)]
        if entry == ZERO:
            return NEVER
        if entry >> _SHIFT == key:
            return np.int32(entry & _PRIORITY) - np.int32(1)
        slot = slot + ONE & mask


@function
def add_pair(direct, pairs, shift, left, right, place):
    """Give a pair a priority, unless it has one."""
    if (left | right) < DIRECT_RANKS:
        index = np.int64(left) * DIRECT_RANKS + right
        if direct[index] == NEVER:
            direct[index] = np.int32(place)
        return
    key = joined(left, right)
    mask = (ONE << np.uint64(64 - shift)) - ONE
    slot = key * GOLDEN >> np.uint64(shift)
    while pairs[np.int64(slot)] != ZERO:
        if pairs[np.int64(slot)] >> _SHIFT == key:
            return
        slot = slot + ONE & mask
    pairs[np.int64(slot)] = key << _SHIFT | np.uint64(place + 1)


def fill_pairs(merges, count, direct, pairs, shift):
    """Enter a merge list of (left, right, result) ranks; `direct` begins as NEVER, `pairs` as zeros."""
    for place in range(count):
        add_pair(direct, pairs, shift, merges[3 * place], merges[3 * place + 1], place)
    return 0
