"""A heap of pairs by f(ij) / (f(i) f(j)), then f(ij), then key, in which a pair's place can be corrected.

An entry is the score as a float and the index of the pair's record. Scores that floats cannot tell apart are
compared exactly, as fractions of the counts that the records hold for it.
"""

import numpy as np

from paribus.native.intrinsics import f64_at, function, i64_at, inline, multiply_high
from paribus.tokenization.kernels.training_layout import (
    HEAP,
    HEAP_USED,
    PAIR,
    PLACE,
    RECORD_WORDS,
    RECORDS,
    SCORED_COUNT,
    SCORED_LEFT,
    SCORED_RIGHT,
)

DOUBT = 1e-14
"""Relative difference of two floats that surely have the order of the fractions."""


@inline
def record_at(base, index):
    """The record of a pair, in those that begin at address `base`."""
    return i64_at(base + 8 * RECORD_WORDS * index)


@function
def product(first, second, third):
    """192 bits of a product of three counts, most significant word first."""
    a, b, c = np.uint64(first), np.uint64(second), np.uint64(third)
    low, high = a * b, multiply_high(a, b)
    middle, top = multiply_high(low, c), multiply_high(high, c)
    added = middle + high * c
    return top + np.uint64(added < middle), added, low * c


@function
def exactly_before(record, other):
    """Whether one pair goes before another, by fractions."""
    # a / (b c) > d / (e f) as a e f > d b c: nothing is divided, so nothing is rounded.
    high, middle, low = product(record[SCORED_COUNT], other[SCORED_LEFT], other[SCORED_RIGHT])
    other_high, other_middle, other_low = product(other[SCORED_COUNT], record[SCORED_LEFT], record[SCORED_RIGHT])
    if high != other_high:
        return high > other_high
    if middle != other_middle:
        return middle > other_middle
    if low != other_low:
        return low > other_low
    if record[SCORED_COUNT] != other[SCORED_COUNT]:
        return record[SCORED_COUNT] > other[SCORED_COUNT]
    return record[PAIR] < other[PAIR]


@inline
def before(base, score, record, other_score, other):
    """Whether one entry goes before another."""
    # A score is made of three counts by five roundings of 1.1e-16 at most. So floats that are farther apart than DOUBT
    # have the order of the fractions.
    if abs(score - other_score) > DOUBT * other_score:
        return score > other_score
    return exactly_before(record_at(base, record), record_at(base, other))


@inline
def put(base, scores, records, index, score, record):
    """Write an entry and tell its record where it is."""
    scores[2 * index], records[2 * index + 1] = score, record
    record_at(base, record)[PLACE] = index


@function
def settle(state, index, score, record):
    """Put an entry at `index`, or above or below it, as its order demands."""
    scores, records, used = f64_at(state[HEAP]), i64_at(state[HEAP]), state[HEAP_USED]
    base = state[RECORDS]
    # A score may have risen or fallen: one of the two loops does nothing.
    while index > 0:
        parent = (index - 1) >> 1
        if not before(base, score, record, scores[2 * parent], records[2 * parent + 1]):
            break
        put(base, scores, records, index, scores[2 * parent], records[2 * parent + 1])
        index = parent
    while True:
        child = 2 * index + 1
        if child >= used:
            break
        if child + 1 < used:
            other = child + 1
            if before(base, scores[2 * other], records[2 * other + 1], scores[2 * child], records[2 * child + 1]):
                child = other
        if not before(base, scores[2 * child], records[2 * child + 1], score, record):
            break
        put(base, scores, records, index, scores[2 * child], records[2 * child + 1])
        index = child
    put(base, scores, records, index, score, record)


@function
def score_pair(state, record, count, left, right):
    """Put the pair of a record where these counts of it and its tokens belong; a pair that is new is added."""
    pair = record_at(state[RECORDS], record)
    if pair[PLACE] >= 0 and pair[SCORED_COUNT] == count and pair[SCORED_LEFT] == left and pair[SCORED_RIGHT] == right:
        return
    pair[SCORED_COUNT], pair[SCORED_LEFT], pair[SCORED_RIGHT] = count, left, right
    index = pair[PLACE]
    if index < 0:
        index = state[HEAP_USED]
        state[HEAP_USED] += 1
    settle(state, index, np.float64(count) / (np.float64(left) * np.float64(right)), record)


@function
def remove(state, record):
    """Take a pair out of the heap, if it is there."""
    removed = record_at(state[RECORDS], record)
    index = removed[PLACE]
    if index < 0:
        return
    removed[PLACE] = -1
    used = state[HEAP_USED] - 1
    state[HEAP_USED] = used
    if index < used:
        settle(state, index, f64_at(state[HEAP])[2 * used], i64_at(state[HEAP])[2 * used + 1])
