"""Training of WordPiece by likelihood on `symbols`, a number of merges at a time.

A merge lowers the counts of both its tokens, so the scores of all their pairs change and may rise. The records of
pairs hang in a chain for each left and each right token; after a merge those of both tokens are scored anew.
"""

import numpy as np

from paribus.native.compiler import f64_at, function, i32_at, i64_at, inline, multiply_high
from paribus.tokenization.kernels import training_layout as at
from paribus.tokenization.kernels.train import add_token, forget, list_after, list_before, replace

LOW = (1 << 32) - 1
DOUBT = 1e-14
"""Relative difference of two floats that surely have the order of the fractions."""


@function
def link(state, index):
    """Hang a record into the chains of its tokens; it is not in the heap."""
    record = record_at(state[at.RECORDS], index)
    of_left, of_right = i64_at(state[at.CHAINS]), i64_at(state[at.CHAINS] + 8 * state[at.TOKEN_ROOM])
    left, right = record[at.PAIR] >> 32, record[at.PAIR] & LOW
    record[at.NEXT_OF_LEFT], record[at.NEXT_OF_RIGHT] = of_left[left], of_right[right]
    of_left[left] = of_right[right] = index
    record[at.PLACE] = -1


def link_pairs(state):
    """Hang all records into the chains and score them; returns their number."""
    live = i64_at(state[at.LIVE])
    for index in range(state[at.RECORDS_USED]):
        link(state, np.int64(index))
        record = record_at(state[at.RECORDS], index)
        score_pair(state, np.int64(index), record[at.COUNT], live[record[at.PAIR] >> 32], live[record[at.PAIR] & LOW])
    return state[at.RECORDS_USED]


@function
def lacking(state, occurrences):
    """Code of the array that must grow before a pair with `occurrences` can be merged, or -1."""
    # On each side there are at most as many new pairs as occurrences, or as tokens to be neighbours.
    made = 2 * min(occurrences, state[at.TOKENS] + 1)
    if state[at.TOKENS] >= state[at.TOKEN_ROOM]:
        return np.int64(at.GROW_TOKENS)
    if state[at.RECORDS_USED] + made > state[at.RECORD_ROOM]:
        state[at.WANTED] = state[at.RECORDS_USED] + made
        return np.int64(at.GROW_RECORDS)
    if state[at.OCCURRENCES_USED] + 2 * occurrences > state[at.OCCURRENCE_ROOM]:
        state[at.WANTED] = state[at.OCCURRENCES_USED] + 2 * occurrences
        return np.int64(at.GROW_OCCURRENCES)
    if occurrences > state[at.MET_ROOM]:
        state[at.WANTED] = occurrences
        return np.int64(at.GROW_MET)
    return np.int64(-1)


@function
def make(state, pair, count, occurrences):
    """Record a pair that a merge made, with room for its occurrences; returns the place at which they begin."""
    index, place = state[at.RECORDS_USED], state[at.OCCURRENCES_USED]
    record = record_at(state[at.RECORDS], index)
    record[at.PAIR], record[at.COUNT], record[at.FIRST], record[at.OCCURRING] = pair, count, place, occurrences
    link(state, index)
    state[at.RECORDS_USED] = index + 1
    state[at.OCCURRENCES_USED] = place + occurrences
    return place


@function
def make_pairs(state, met_before, met_after):
    """Record the pairs of the new token; where each begins replaces the neighbour's number of occurrences."""
    token, sums_before, sums_after = state[at.TOKENS], i64_at(state[at.BEFORE]), i64_at(state[at.AFTER])
    neighbours_before = i32_at(state[at.NEIGHBOURS])
    neighbours_after = i32_at(state[at.NEIGHBOURS] + 4 * (state[at.TOKEN_ROOM] + 2))
    for index in range(met_after):
        y = np.int64(neighbours_after[index])
        sums_after[2 * y + 1] = make(state, token << 32 | y - 1, sums_after[2 * y], sums_after[2 * y + 1])
    for index in range(met_before):
        x = np.int64(neighbours_before[index])
        sums_before[2 * x + 1] = make(state, x - 1 << 32 | token, sums_before[2 * x], sums_before[2 * x + 1])


@function
def lower(state, left, right):
    """Take from the counts of the pairs that the merge broke up: (x, left) and (right, y)."""
    sums_before, sums_after = i64_at(state[at.BEFORE]), i64_at(state[at.AFTER])
    index = i64_at(state[at.CHAINS] + 8 * state[at.TOKEN_ROOM])[left]
    while index >= 0:
        record = record_at(state[at.RECORDS], index)
        record[at.COUNT] -= sums_before[2 * ((record[at.PAIR] >> 32) + 1)]
        index = record[at.NEXT_OF_RIGHT]
    index = i64_at(state[at.CHAINS])[right]
    while index >= 0:
        record = record_at(state[at.RECORDS], index)
        record[at.COUNT] -= sums_after[2 * ((record[at.PAIR] & LOW) + 1)]
        index = record[at.NEXT_OF_LEFT]


@function
def score_chain(state, token, side):
    """Score anew the pairs with `token` on the left (side 0) or right (side 1); remove those without occurrences."""
    chain, live = i64_at(state[at.CHAINS] + 8 * state[at.TOKEN_ROOM] * side), i64_at(state[at.LIVE])
    following = np.int64(at.NEXT_OF_RIGHT) if side == 1 else np.int64(at.NEXT_OF_LEFT)
    last, index = np.int64(-1), chain[token]
    while index >= 0:
        record = record_at(state[at.RECORDS], index)
        index_after = record[following]
        if record[at.COUNT] > 0:
            score_pair(state, index, record[at.COUNT], live[record[at.PAIR] >> 32], live[record[at.PAIR] & LOW])
            last = index
        else:
            # Tokens are never split again, so such a pair never comes back.
            remove(state, index)
            if last < 0:
                chain[token] = index_after
            else:
                record_at(state[at.RECORDS], last)[following] = index_after
        index = index_after


@function
def merge(state, index):
    """Merge the pair of a record everywhere."""
    record = record_at(state[at.RECORDS], index)
    pair, first = record[at.PAIR], record[at.FIRST]
    left, right, token = pair >> 32, pair & LOW, state[at.TOKENS]
    valid, count, met_before, met_after = replace(state, left, right, first, record[at.OCCURRING])
    add_token(state, left, right, count)
    make_pairs(state, met_before, met_after)
    lower(state, left, right)
    record[at.COUNT] = 0
    list_after(state, first, valid)
    list_before(state, first, valid)
    forget(state, met_before, met_after)
    # Both tokens occur less often now, so the scores of all their pairs changed, also where the pair's count did not.
    for side in range(2):
        score_chain(state, left, np.int64(side))
        if right != left:
            score_chain(state, right, np.int64(side))
        score_chain(state, token, np.int64(side))
    state[at.TOKENS] += 1
    state[at.NORMAL] += 1


def train_wordpiece(state):
    """Go on for STEPS merges, to the TARGET, or until no pair is left; returns why it ended."""
    for _ in range(state[at.STEPS]):
        if state[at.NORMAL] >= state[at.TARGET]:
            return np.int64(at.FULL)
        if state[at.HEAP_USED] == 0:
            return np.int64(at.NO_PAIR_LEFT)
        index = i64_at(state[at.HEAP])[1]
        # Checked before anything is changed, so that the caller can make room and call again for the same merge.
        status = lacking(state, record_at(state[at.RECORDS], index)[at.OCCURRING])
        if status >= 0:
            return status
        merge(state, index)
    return np.int64(at.STEPPED)


# A heap of pairs by f(ij) / (f(i) f(j)), then f(ij), then key, in which a pair's place can be corrected.
#
# An entry is the score as a float and the index of the pair's record. Scores that floats cannot tell apart are
# compared exactly, as fractions of the counts that the records hold for it.
@inline
def record_at(base, index):
    """The record of a pair, in those that begin at address `base`."""
    return i64_at(base + 8 * at.RECORD_WORDS * index)


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
    """True if one pair goes before another, by fractions."""
    # a / (b c) > d / (e f) as a e f > d b c: nothing is divided, so nothing is rounded.
    high, middle, low = product(record[at.SCORED_COUNT], other[at.SCORED_LEFT], other[at.SCORED_RIGHT])
    other_high, other_middle, other_low = product(
        other[at.SCORED_COUNT], record[at.SCORED_LEFT], record[at.SCORED_RIGHT]
    )
    if high != other_high:
        return high > other_high
    if middle != other_middle:
        return middle > other_middle
    if low != other_low:
        return low > other_low
    if record[at.SCORED_COUNT] != other[at.SCORED_COUNT]:
        return record[at.SCORED_COUNT] > other[at.SCORED_COUNT]
    return record[at.PAIR] < other[at.PAIR]


@inline
def before(base, score, record, other_score, other):
    """True if one entry goes before another."""
    # A score is made of three counts by five roundings of 1.1e-16 at most. So floats that are farther apart than DOUBT
    # have the order of the fractions.
    if abs(score - other_score) > DOUBT * other_score:
        return score > other_score
    return exactly_before(record_at(base, record), record_at(base, other))


@inline
def put(base, scores, records, index, score, record):
    """Write an entry and tell its record where it is."""
    scores[2 * index], records[2 * index + 1] = score, record
    record_at(base, record)[at.PLACE] = index


@function
def settle(state, index, score, record):
    """Put an entry at `index`, or above or below it, as its order demands."""
    scores, records, used = f64_at(state[at.HEAP]), i64_at(state[at.HEAP]), state[at.HEAP_USED]
    base = state[at.RECORDS]
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
    """Move the pair of a record to its place in the heap for these counts of it and its tokens, or add it."""
    pair = record_at(state[at.RECORDS], record)
    if (
        pair[at.PLACE] >= 0
        and pair[at.SCORED_COUNT] == count
        and pair[at.SCORED_LEFT] == left
        and pair[at.SCORED_RIGHT] == right
    ):
        return
    pair[at.SCORED_COUNT], pair[at.SCORED_LEFT], pair[at.SCORED_RIGHT] = count, left, right
    index = pair[at.PLACE]
    if index < 0:
        index = state[at.HEAP_USED]
        state[at.HEAP_USED] += 1
    settle(state, index, np.float64(count) / (np.float64(left) * np.float64(right)), record)


@function
def remove(state, record):
    """Remove a pair from the heap, if it is in it."""
    removed = record_at(state[at.RECORDS], record)
    index = removed[at.PLACE]
    if index < 0:
        return
    removed[at.PLACE] = -1
    used = state[at.HEAP_USED] - 1
    state[at.HEAP_USED] = used
    if index < used:
        settle(state, index, f64_at(state[at.HEAP])[2 * used], i64_at(state[at.HEAP])[2 * used + 1])
