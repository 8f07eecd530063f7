"""What every merge does on `symbols`: replace its pair, note the neighbours, list the occurrences of new pairs.

The neighbours' sums are indexed by token plus one: their count, then how often they were met, which whoever enters
the new pairs replaces by where their occurrences begin, or -1.
"""

import numpy as np

from paribus.native.intrinsics import function, i32_at, i64_at, inline, prefetch, separate
from paribus.tokenization.kernels.training_layout import (
    AFTER,
    BEFORE,
    FREQUENCIES,
    GONE,
    LEFT,
    LENGTHS,
    LIVE,
    MET,
    NEIGHBOURS,
    OCCURRENCES,
    POSITION_BITS,
    RIGHT,
    SYMBOLS,
    TOKEN_ROOM,
    TOKENS,
    WEIGHTS,
)

AHEAD = 12
"""Occurrences between asking for a position and reading it."""
POSITIONS = (1 << POSITION_BITS) - 1
LOW = (1 << 32) - 1


@inline
def meet(sums, neighbours, met, neighbour, weight):
    """Add to the count of a neighbour, noting it the first time; returns how many were noted."""
    known = sums[2 * neighbour + 1]
    sums[2 * neighbour] += weight
    sums[2 * neighbour + 1] = known + 1
    neighbours[met] = neighbour
    return met + np.int64(known == 0)


@separate
def replace(state, left, right, first, occurrences):
    """Replace a pair, left to right, by the token that is next; returns replacements, their weight, and neighbours.

    What was replaced is left at the begin of the pair's occurrences, its neighbours (plus one) in MET.
    """
    symbols, lengths, weights = i32_at(state[SYMBOLS]), i32_at(state[LENGTHS]), i64_at(state[WEIGHTS])
    places, met = i64_at(state[OCCURRENCES] + 8 * first), i64_at(state[MET])
    sums_before, sums_after = i64_at(state[BEFORE]), i64_at(state[AFTER])
    neighbours_before = i32_at(state[NEIGHBOURS])
    neighbours_after = i32_at(state[NEIGHBOURS] + 4 * (state[TOKEN_ROOM] + 2))
    token, first_length, length = state[TOKENS], np.int64(lengths[left]), np.int64(lengths[left] + lengths[right])
    # Index 0 is the border of a word, which is no neighbour: taken for met already, it is noted nowhere.
    sums_before[1] = sums_after[1] = 1
    valid = total = met_before = met_after = np.int64(0)
    for index in range(occurrences):
        if index + AHEAD < occurrences:
            coming = places[index + AHEAD]
            prefetch(state[SYMBOLS] + 4 * (coming & POSITIONS))
            prefetch(state[WEIGHTS] + 8 * (coming >> POSITION_BITS))
        place = places[index]
        position = place & POSITIONS
        # Occurrences are not taken off their lists by the merges that use them up, so they are looked at when it is
        # their turn. That also keeps overlapping ones apart: of a a a, the first a a takes the second's left part.
        if symbols[position] != left or symbols[position + first_length] != right:
            continue
        weight = weights[place >> POSITION_BITS]
        x = np.int64(symbols[position - 1]) + 1
        y = np.int64(symbols[position + length]) + 1
        # A token stands at its first and its last place, where its neighbours look; of one symbol both are one, so the
        # place of the right part is emptied first.
        symbols[position + first_length] = GONE
        symbols[position] = token
        symbols[position + length - 1] = token
        total += weight
        met_before = meet(sums_before, neighbours_before, met_before, x, weight)
        met_after = meet(sums_after, neighbours_after, met_after, y, weight)
        met[valid] = x << 32 | y
        places[valid] = place
        valid += 1
    sums_before[0] = sums_after[0] = 0
    return valid, total, met_before, met_after


@function
def list_after(state, first, valid):
    """Write the occurrences of the pairs with right neighbours."""
    places, met, sums = i64_at(state[OCCURRENCES] + 8 * first), i64_at(state[MET]), i64_at(state[AFTER])
    occurrences = i64_at(state[OCCURRENCES])
    sums[1] = -1
    for index in range(valid):
        y = met[index] & LOW
        target = sums[2 * y + 1]
        if target >= 0:
            occurrences[target] = places[index]
            sums[2 * y + 1] = target + 1


@function
def list_before(state, first, valid):
    """Write the occurrences of the pairs with left neighbours."""
    places, met, sums = i64_at(state[OCCURRENCES] + 8 * first), i64_at(state[MET]), i64_at(state[BEFORE])
    occurrences, lengths = i64_at(state[OCCURRENCES]), i32_at(state[LENGTHS])
    sums[1] = -1
    for index in range(valid):
        x = met[index] >> 32
        target = sums[2 * x + 1]
        if target >= 0:
            occurrences[target] = places[index] - lengths[x - 1]
            sums[2 * x + 1] = target + 1


@function
def forget(state, met_before, met_after):
    """Empty the sums of the neighbours."""
    sums_before, sums_after = i64_at(state[BEFORE]), i64_at(state[AFTER])
    neighbours_before = i32_at(state[NEIGHBOURS])
    neighbours_after = i32_at(state[NEIGHBOURS] + 4 * (state[TOKEN_ROOM] + 2))
    for index in range(met_before):
        x = np.int64(neighbours_before[index])
        sums_before[2 * x] = sums_before[2 * x + 1] = 0
    for index in range(met_after):
        y = np.int64(neighbours_after[index])
        sums_after[2 * y] = sums_after[2 * y + 1] = 0


@function
def add_token(state, left, right, count):
    """Enter the token that was made of a pair."""
    token, lengths, live = state[TOKENS], i32_at(state[LENGTHS]), i64_at(state[LIVE])
    i32_at(state[LEFT])[token], i32_at(state[RIGHT])[token] = left, right
    lengths[token] = lengths[left] + lengths[right]
    i64_at(state[FREQUENCIES])[token] = count
    live[token] = count
    live[left] -= count
    live[right] -= count
