"""Merge-rank encoding: apply the earliest-learned applicable merge, leftmost first at equal rank.

The standard encoding of BPE; over an expanded vocabulary the first half of Scaffold-BPE's Algorithm 2. Few units are
merged by a plain search for the smallest rank; many through a heap, in O(n log n). Several merges may share a turn
(`TURNS`; SentencePiece's of equal score), and then the leftmost comes first whichever it is: these go through the heap.
"""

import numpy as np

from paribus.native.intrinsics import address_of, function, i32_at, inline, u64_at
from paribus.tokenization.kernels.heap import heapify, pop, push
from paribus.tokenization.kernels.layout import DIRECT, PAIRS, PAIRS_SHIFT, RESULTS, TURNS
from paribus.tokenization.kernels.pairs import NEVER, priority

FEW = 64
LOW = np.uint64(0xFFFFFFFF)
BITS = np.uint64(32)


@function
def merge_few(model, units, count, work):
    """Merge `units` in place; returns how many tokens are left."""
    direct, pairs, shift = i32_at(model[DIRECT]), u64_at(model[PAIRS]), model[PAIRS_SHIFT]
    results, waiting = i32_at(model[RESULTS]), i32_at(address_of(work))
    for index in range(count - 1):
        waiting[index] = priority(direct, pairs, shift, units[index], units[index + 1])
    while count > 1:
        best, place = NEVER, np.int64(-1)
        for index in range(count - 1):
            # Strictly smaller, so that of equal ranks the leftmost is merged first.
            if waiting[index] < best:
                best, place = waiting[index], np.int64(index)
        if place < 0:
            break
        units[place] = results[best]
        count -= 1
        for index in range(place + 1, count):
            units[index] = units[index + 1]
        for index in range(place + 1, count - 1):
            waiting[index] = waiting[index + 1]
        if place + 1 < count:
            waiting[place] = priority(direct, pairs, shift, units[place], units[place + 1])
        if place > 0:
            waiting[place - 1] = priority(direct, pairs, shift, units[place - 1], units[place])
    return count


@inline
def turn(model, merge):
    """When a merge is applied: its place among the merges, or what it shares with others."""
    return i32_at(model[TURNS])[merge] if model[TURNS] != 0 else merge


@inline
def waits(model, merge, place):
    """The heap's entry for a merge whose left token is at `place`: by turn, then position."""
    return np.uint64(turn(model, merge)) << BITS | np.uint64(place)


@function
def offer(model, heap, size, left, right, place):
    """Push the merge of two tokens, the left one at `place`, if there is one; returns the heap's size."""
    found = priority(i32_at(model[DIRECT]), u64_at(model[PAIRS]), model[PAIRS_SHIFT], left, right)
    if found == NEVER:
        return size
    return push(heap, size, waits(model, found, place))


@function
def link(model, units, count, work):
    """Chain the units and fill the heap with the merges of neighbours; returns the heap's size.

    `work` holds the positions before and after each unit (int32), then the heap.
    """
    base = address_of(work)
    previous, following, heap = i32_at(base), i32_at(base + 4 * count), u64_at(base + 8 * (count + 1))
    direct, pairs, shift = i32_at(model[DIRECT]), u64_at(model[PAIRS]), model[PAIRS_SHIFT]
    size = np.int64(0)
    for index in range(count):
        previous[index], following[index] = np.int32(index - 1), np.int32(index + 1)
        if index + 1 < count:
            found = priority(direct, pairs, shift, units[index], units[index + 1])
            if found != NEVER:
                heap[size] = waits(model, found, index)
                size += 1
    heapify(heap, size)
    return size


@function
def still_there(model, units, count, work, entry):
    """The merge of a heap entry, or NEVER where it no longer applies where it was offered."""
    place = np.int64(entry & LOW)
    second = np.int64(i32_at(address_of(work) + 4 * count)[place])
    if units[place] < 0 or second >= count:
        return NEVER
    direct, pairs, shift = i32_at(model[DIRECT]), u64_at(model[PAIRS]), model[PAIRS_SHIFT]
    found = priority(direct, pairs, shift, units[place], units[second])
    if found == NEVER or waits(model, found, place) != entry:
        return NEVER
    return found


@function
def join(model, units, count, work, place, merge, heap, size):
    """Apply a merge whose left token is at `place` and offer those of its token; returns the heap's size."""
    base = address_of(work)
    previous, following = i32_at(base), i32_at(base + 4 * count)
    second = np.int64(following[place])
    token = i32_at(model[RESULTS])[merge]
    units[place], units[second] = token, np.int32(-1)
    before, after = np.int64(previous[place]), np.int64(following[second])
    following[place] = np.int32(after)
    if after < count:
        previous[after] = np.int32(place)
        size = offer(model, heap, size, token, units[after], place)
    if before >= 0:
        size = offer(model, heap, size, units[before], token, before)
    return size


@function
def close_gaps(units, count):
    """Move the tokens that are left together; returns how many."""
    left = np.int64(0)
    for index in range(count):
        if units[index] >= 0:
            units[left] = units[index]
            left += 1
    return left


@function
def merge_many(model, units, count, work):
    """The same for any number of units; `work` has 8 int64 a unit."""
    size = link(model, units, count, work)
    heap = u64_at(address_of(work) + 8 * (count + 1))
    while size > 0:
        entry = heap[0]
        size = pop(heap, size)
        # Entries are not taken out when a neighbour's merge makes them void: that would cost a search each.
        found = still_there(model, units, count, work, entry)
        if found != NEVER:
            size = join(model, units, count, work, np.int64(entry & LOW), found, heap, size)
    return close_gaps(units, count)


@function
def merge(model, units, count, work):
    """Replace `units` by the ranks of their tokens; returns how many."""
    if count <= FEW and model[TURNS] == 0:
        return merge_few(model, units, count, work)
    return merge_many(model, units, count, work)
