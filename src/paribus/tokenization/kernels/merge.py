"""Encoding by merges: merge-rank, BPE-dropout, the table of merges and their queue."""

import numpy as np

from paribus.native.compiler import address_of, function, i32_at, inline, u64_at
from paribus.tokenization.kernels import layout as at
from paribus.tokenization.kernels.classify import ONE, ZERO

FEW = 64
LOW = np.uint64(0xFFFFFFFF)
BITS = np.uint64(32)
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
NEVER = np.int32(0x7FFFFFFF)
"""Priority of a pair that no merge joins."""
_SHIFT, _RANK = np.uint64(at.PRIORITY_BITS), np.uint64(at.RANK_BITS)
_PRIORITY = np.uint64((1 << at.PRIORITY_BITS) - 1)


# Merge-rank encoding: apply the earliest-learned applicable merge, leftmost first at equal rank.
#
# The standard encoding of BPE; over an expanded vocabulary the first half of Scaffold-BPE's Algorithm 2. Few units are
# merged by a plain search for the smallest rank; many through a heap, in O(n log n). Several merges may share a turn
# (`TURNS`; SentencePiece's of equal score), and then the leftmost comes first whichever it is: these go through the
# heap.
@function
def merge_few(model, units, count, work):
    """Merge `units` in place; returns the number of tokens."""
    direct, pairs, shift = i32_at(model[at.DIRECT]), u64_at(model[at.PAIRS]), model[at.PAIRS_SHIFT]
    results, waiting = i32_at(model[at.RESULTS]), i32_at(address_of(work))
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
    """Turn of a merge: its place among the merges, or the turn that it shares with others."""
    return i32_at(model[at.TURNS])[merge] if model[at.TURNS] != 0 else merge


@inline
def waits(model, merge, place):
    """The heap's entry for a merge whose left token is at `place`: by turn, then position."""
    return np.uint64(turn(model, merge)) << BITS | np.uint64(place)


@function
def offer(model, heap, size, left, right, place):
    """Push the merge of two tokens, the left one at `place`, if there is one; returns the heap's size."""
    found = priority(i32_at(model[at.DIRECT]), u64_at(model[at.PAIRS]), model[at.PAIRS_SHIFT], left, right)
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
    direct, pairs, shift = i32_at(model[at.DIRECT]), u64_at(model[at.PAIRS]), model[at.PAIRS_SHIFT]
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
    """The merge of a heap entry, or NEVER if it no longer applies at its place."""
    place = np.int64(entry & LOW)
    second = np.int64(i32_at(address_of(work) + 4 * count)[place])
    if units[place] < 0 or second >= count:
        return NEVER
    direct, pairs, shift = i32_at(model[at.DIRECT]), u64_at(model[at.PAIRS]), model[at.PAIRS_SHIFT]
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
    token = i32_at(model[at.RESULTS])[merge]
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
    """Move the remaining tokens together; returns their number."""
    left = np.int64(0)
    for index in range(count):
        if units[index] >= 0:
            units[left] = units[index]
            left += 1
    return left


@function
def merge_many(model, units, count, work):
    """Merge any number of units; `work` has 8 int64 per unit."""
    size = link(model, units, count, work)
    heap = u64_at(address_of(work) + 8 * (count + 1))
    while size > 0:
        entry = heap[0]
        size = pop(heap, size)
        # Entries that a neighbour's merge made void stay in the heap: removing each would cost a search.
        found = still_there(model, units, count, work, entry)
        if found != NEVER:
            size = join(model, units, count, work, np.int64(entry & LOW), found, heap, size)
    return close_gaps(units, count)


@function
def merge(model, units, count, work):
    """Replace `units` by the ranks of their tokens; returns how many."""
    if count <= FEW and model[at.TURNS] == 0:
        return merge_few(model, units, count, work)
    return merge_many(model, units, count, work)


# BPE-dropout (Provilkov et al. 2020): at every step each applicable merge is skipped with probability p.
#
# At each step the applicable merges are tried in order of rank, then position; each takes one random number and is
# skipped for this step with probability p; the first that is not skipped is applied. When all are skipped, merging
# ends. The random numbers of a pre-token are splitmix64 of a counter that begins at `stream`.
@inline
def mix(value):
    """splitmix64: a counter to 64 random bits."""
    value = value + np.uint64(0x9E3779B97F4A7C15)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@function
def drop_few(model, units, count, probability, stream, work):
    """Encode few units: search for the smallest rank that is not skipped. `probability` is of 2^32."""
    direct, pairs, shift = i32_at(model[at.DIRECT]), u64_at(model[at.PAIRS]), model[at.PAIRS_SHIFT]
    results, waiting = i32_at(model[at.RESULTS]), i32_at(address_of(work))
    for index in range(count - 1):
        waiting[index] = priority(direct, pairs, shift, units[index], units[index + 1])
    while count > 1:
        last, last_place = np.int32(-1), np.int64(-1)
        best, place = NEVER, np.int64(-1)
        while True:
            # The first after the one that was skipped last, in order of rank, then position.
            best, place = NEVER, np.int64(-1)
            for index in range(count - 1):
                found = waiting[index]
                if found < best and (found > last or (found == last and index > last_place)):
                    best, place = found, np.int64(index)
            if place < 0 or mix(stream) >> BITS >= probability:
                break
            stream += ONE
            last, last_place = best, place
        if place < 0:
            break
        stream += ONE
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


@function
def drop_many(model, units, count, probability, stream, work):
    """Encode many units: a heap, and a list of what this step skipped."""
    size = link(model, units, count, work)
    base = address_of(work)
    heap, skipped = u64_at(base + 8 * (count + 1)), u64_at(base + 8 * (4 * count + 2))
    waiting = np.int64(0)
    while size > 0:
        entry = heap[0]
        size = pop(heap, size)
        # A merge made since took one of its units: it is not applicable, so it takes no random number.
        found = still_there(model, units, count, work, entry)
        if found == NEVER:
            continue
        stream += ONE
        if mix(stream - ONE) >> BITS < probability:
            skipped[waiting] = entry
            waiting += 1
            continue
        # One was applied, which ends the step: what it skipped is tried again in the next.
        for index in range(waiting):
            size = push(heap, size, skipped[index])
        waiting = np.int64(0)
        size = join(model, units, count, work, np.int64(entry & LOW), found, heap, size)
    return close_gaps(units, count)


@function
def merge_with_dropout(model, units, count, probability, stream, work):
    """Replace `units` by the ranks of their tokens; returns how many. `probability` is of 2^32."""
    if count <= FEW:
        return drop_few(model, units, count, probability, stream, work)
    return drop_many(model, units, count, probability, stream, work)


# The merge that joins two tokens, by its priority, which is its place in the merge list.
#
# Pairs of the first 256 ranks, the bytes, have a table of their own; all others share a hash table of one word per
# entry: the two ranks (21 bits each) and the priority plus one (22 bits). Small tables stay in the caches.
@inline
def joined(left, right):
    """The key of a pair."""
    return np.uint64(left) << _RANK | np.uint64(right)


@inline
def priority(direct, pairs, shift, left, right):
    """Priority of the merge of two ranks, or NEVER."""
    if (left | right) < at.DIRECT_RANKS:
        return direct[np.int64(left) * at.DIRECT_RANKS + right]
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
    if (left | right) < at.DIRECT_RANKS:
        index = np.int64(left) * at.DIRECT_RANKS + right
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


@function
def sift_down(heap, size, index):
    """Restore order below `index`."""
    value = heap[index]
    while True:
        child = 2 * index + 1
        if child >= size:
            break
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= value:
            break
        heap[index] = heap[child]
        index = child
    heap[index] = value


@function
def heapify(heap, size):
    """Order `size` values."""
    for index in range(size // 2 - 1, -1, -1):
        sift_down(heap, size, np.int64(index))


@function
def push(heap, size, value):
    """Add a value; returns the size."""
    index = size
    while index > 0:
        parent = (index - 1) // 2
        if heap[parent] <= value:
            break
        heap[index] = heap[parent]
        index = parent
    heap[index] = value
    return size + 1


@function
def pop(heap, size):
    """Remove the smallest value, `heap[0]`; returns the size."""
    size -= 1
    heap[0] = heap[size]
    if size > 1:
        sift_down(heap, size, np.int64(0))
    return size
