"""BPE-dropout (Provilkov et al. 2020): at every step each applicable merge is skipped with probability p.

At each step the applicable merges are tried in order of rank, then position; each takes one random number and is
skipped for this step with probability p; the first that is not skipped is applied. When all are skipped, merging ends.
The random numbers of a pre-token are splitmix64 of a counter that begins at `stream`.
"""

import numpy as np

from paribus.tokenization.kernels.classes import ALL, ONE, function, inline
from paribus.tokenization.kernels.heap import heapify, pop, push
from paribus.tokenization.kernels.intrinsics import address_of, i32_at, u64_at
from paribus.tokenization.kernels.merge_rank import BITS, FEW, LOW, merged


@inline
def mix(value):
    """splitmix64: a counter to 64 random bits."""
    value = value + np.uint64(0x9E3779B97F4A7C15)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@function
def drop_few(pairs, shift, units, count, probability, stream, work):
    """For few units: search for the smallest rank that is not skipped. `probability` is of 2^32."""
    values = u64_at(address_of(work))
    for index in range(count - 1):
        values[index] = merged(pairs, shift, units[index], units[index + 1])
    while count > 1:
        last, last_place = np.uint64(0), np.int64(-1)
        best, place = ALL, np.int64(-1)
        while True:
            best, place = ALL, np.int64(-1)
            for index in range(count - 1):
                value = values[index]
                if value < best and (value > last or (value == last and index > last_place)):
                    best, place = value, np.int64(index)
            if place < 0 or mix(stream) >> BITS >= probability:
                break
            stream += ONE
            last, last_place = best, place
        if place < 0:
            break
        stream += ONE
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
def drop_many(pairs, shift, units, count, probability, stream, work):
    """For many units: a heap, and a list of what this step skipped."""
    base = address_of(work)
    previous, following = i32_at(base), i32_at(base + 4 * count)
    heap = u64_at(base + 8 * (count + 1))
    skipped = u64_at(base + 8 * (4 * count + 2))
    size = waiting = np.int64(0)
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
        stream += ONE
        if mix(stream - ONE) >> BITS < probability:
            skipped[waiting] = entry
            waiting += 1
            continue
        for index in range(waiting):
            size = push(heap, size, skipped[index])
        waiting = np.int64(0)
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
def merge_with_dropout(pairs, shift, units, count, probability, stream, work):
    """Replace `units` by the ranks of their tokens; returns how many. `probability` is of 2^32."""
    if count <= FEW:
        return drop_few(pairs, shift, units, count, probability, stream, work)
    return drop_many(pairs, shift, units, count, probability, stream, work)
