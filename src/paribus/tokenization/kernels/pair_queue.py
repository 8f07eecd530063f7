"""Pairs by key in an open-addressing table, and a heap of them: largest count first, then smallest key.

A count that falls leaves its old entry in the heap; `pairs` of the training kernels correct it when it comes to the
head.
"""

import numpy as np

from paribus.native.intrinsics import function, inline
from paribus.tokenization.kernels.pairs import GOLDEN


@inline
def pair_of(left, right):
    """The key that orders pairs by left, then right."""
    return left << 32 | right


@inline
def slot_of(pair, shift):
    """Where the search for a pair begins."""
    return np.int64(np.uint64(pair) * GOLDEN >> np.uint64(shift))


@inline
def find_pair(pairs, shift, pair):
    """Index of the entry of a pair, or of the empty entry where it belongs: that whose first word is 0."""
    mask = (np.int64(1) << (64 - shift)) - 1
    slot = slot_of(pair, shift)
    # Keys are kept plus one, since zero stands for an empty entry.
    while pairs[4 * slot] != pair + 1 and pairs[4 * slot] != 0:
        slot = slot + 1 & mask
    return 4 * slot


@inline
def before(count, key, other_count, other_key):
    """Whether one entry of the heap goes before another."""
    return count > other_count or (count == other_count and key < other_key)


@function
def push(heap, used, count, key):
    """Add an entry; returns how many there are."""
    index = np.int64(used)
    while index > 0:
        parent = (index - 1) >> 1
        if not before(count, key, heap[2 * parent], heap[2 * parent + 1]):
            break
        heap[2 * index], heap[2 * index + 1] = heap[2 * parent], heap[2 * parent + 1]
        index = parent
    heap[2 * index], heap[2 * index + 1] = count, key
    return used + 1


@function
def sink(heap, used, index, count, key):
    """Put an entry at `index` or below, where the entries below it are in order."""
    while True:
        child = 2 * index + 1
        if child >= used:
            break
        if child + 1 < used:
            other = 2 * child + 2
            if before(heap[other], heap[other + 1], heap[2 * child], heap[2 * child + 1]):
                child += 1
        if not before(heap[2 * child], heap[2 * child + 1], count, key):
            break
        heap[2 * index], heap[2 * index + 1] = heap[2 * child], heap[2 * child + 1]
        index = child
    heap[2 * index], heap[2 * index + 1] = count, key


@function
def pop(heap, used):
    """Take the head away; returns how many are left."""
    used -= 1
    sink(heap, used, np.int64(0), heap[2 * used], heap[2 * used + 1])
    return used
