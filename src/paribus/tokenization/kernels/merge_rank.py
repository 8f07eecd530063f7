"""Merge-rank encoding: apply the earliest-learned applicable merge, leftmost first at equal rank.

The standard encoding of BPE; over an expanded vocabulary the first half of Scaffold-BPE's Algorithm 2. Few units are
merged by a plain search for the smallest rank; many through a heap, in O(n log n).
"""

import numpy as np

from paribus.tokenization.kernels.classes import ALL, function, inline
from paribus.tokenization.kernels.hashing import find
from paribus.tokenization.kernels.heap import heapify, pop, push
from paribus.tokenization.kernels.intrinsics import address_of, i32_at, u64_at

FEW = 64
LOW = np.uint64(0xFFFFFFFF)
BITS = np.uint64(32)


@inline
def merged(pairs, shift, left, right):
    """priority << 32 | token of a pair, or ALL."""
    return find(pairs, shift, np.uint64(left) << BITS | np.uint64(right))


@function
def merge_few(pairs, shift, units, count, work):
    """Merge `units` in place; returns how many tokens are left."""
    values = u64_at(address_of(work))
    for index in range(count - 1):
        values[index] = merged(pairs, shift, units[index], units[index + 1])
    while count > 1:
        best, place = ALL, np.int64(-1)
        for index in range(count - 1):
            if values[index] < best:
                best, place = values[index], np.int64(index)
        if place < 0:
            break
        units[place] = np.int32(best & LOW)
        count -= 1
        for index in range(place + 1, count):
            units[index] = units[index + 1]
        for index in range(place + 1, count - 1):
            values[index] = values[index + 1]
        if place + 1 < count:
            values[place] = merged(pairs, shift, units[place], units[place + 1])
        if place > 0:
            values[place - 1] = merged(pairs, shift, units[place - 1], units[place])
    return count


@function
def merge_many(pairs, shift, units, count, work):
    """The same for any number of units; `work` has 8 int64 a unit."""
    previous, following = i32_at(address_of(work)), i32_at(address_of(work) + 4 * count)
    heap = u64_at(address_of(work) + 8 * (count + 1))
    size = np.int64(0)
    for index in range(count):
        previous[index], following[index] = np.int32(index - 1), np.int32(index + 1)
        if index + 1 < count:
            value = merged(pairs, shift, units[index], units[index + 1])
            if value != ALL:
                heap[size] = value >> BITS << BITS | np.uint64(index)
                size += 1
    heapify(heap, size)
    while size > 0:
        entry = heap[0]
        size = pop(heap, size)
        place = np.int64(entry & LOW)
        second = np.int64(following[place])
        if units[place] < 0 or second >= count:
            continue
        value = merged(pairs, shift, units[place], units[second])
        if value == ALL or value >> BITS != entry >> BITS:
            continue
        token = np.int32(value & LOW)
        units[place], units[second] = token, np.int32(-1)
        before, after = np.int64(previous[place]), np.int64(following[second])
        following[place] = np.int32(after)
        if after < count:
            previous[after] = np.int32(place)
            value = merged(pairs, shift, token, units[after])
            if value != ALL:
                size = push(heap, size, value >> BITS << BITS | np.uint64(place))
        if before >= 0:
            value = merged(pairs, shift, units[before], token)
            if value != ALL:
                size = push(heap, size, value >> BITS << BITS | np.uint64(before))
    left = np.int64(0)
    for index in range(count):
        if units[index] >= 0:
            units[left] = units[index]
            left += 1
    return left


@function
def merge(pairs, shift, units, count, work):
    """Replace `units` by the ranks of their tokens; returns how many."""
    if count <= FEW:
        return merge_few(pairs, shift, units, count, work)
    return merge_many(pairs, shift, units, count, work)
