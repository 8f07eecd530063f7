"""BPE-dropout (Provilkov et al. 2020): at every step each applicable merge is skipped with probability p.

At each step the applicable merges are tried in order of rank, then position; each takes one random number and is
skipped for this step with probability p; the first that is not skipped is applied. When all are skipped, merging ends.
The random numbers of a pre-token are splitmix64 of a counter that begins at `stream`.
"""

import numpy as np

from paribus.native.intrinsics import address_of, function, i32_at, inline, u64_at
from paribus.tokenization.kernels.classes import ONE
from paribus.tokenization.kernels.heap import pop, push
from paribus.tokenization.kernels.layout import DIRECT, PAIRS, PAIRS_SHIFT, RESULTS
from paribus.tokenization.kernels.merge_rank import BITS, FEW, LOW, close_gaps, join, link, still_there
from paribus.tokenization.kernels.pairs import NEVER, priority


@inline
def mix(value):
    """splitmix64: a counter to 64 random bits."""
    value = value + np.uint64(0x9E3779B97F4A7C15)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@function
def drop_few(model, units, count, probability, stream, work):
    """For few units: search for the smallest rank that is not skipped. `probability` is of 2^32."""
    direct, pairs, shift = i32_at(model[DIRECT]), u64_at(model[PAIRS]), model[PAIRS_SHIFT]
    results, waiting = i32_at(model[RESULTS]), i32_at(address_of(work))
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
    """For many units: a heap, and a list of what this step skipped."""
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
