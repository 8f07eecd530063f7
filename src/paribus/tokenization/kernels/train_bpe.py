"""Byte-pair encoding and Scaffold-BPE on `symbols`, a number of steps at a time.

A pair's occurrences lie together and in order of position. A merge passes over those of its pair, leaves out what
other merges took, and adds up what is lost and made for each distinct neighbour, so that each costs one look-up. No
count of a pair rises once its younger token is made, hence pairs rarer than a threshold need no entry until Python
lowers it and has the corpus indexed anew.
"""

import numpy as np

from paribus.native.intrinsics import function, i32_at, i64_at, prefetch, u8_at
from paribus.tokenization.kernels.merging import add_token, forget, list_after, list_before, replace
from paribus.tokenization.kernels.pair_queue import find_pair, pair_of, pop, push, sink, slot_of
from paribus.tokenization.kernels.scaffolds import mark, readmit
from paribus.tokenization.kernels.training_layout import (
    AFTER,
    BEFORE,
    FULL,
    GROW_HEAP,
    GROW_MET,
    GROW_OCCURRENCES,
    GROW_PAIRS,
    GROW_TOKENS,
    HEAP,
    HEAP_ROOM,
    HEAP_USED,
    LIVE,
    LOWER_THRESHOLD,
    MARKED_LEFT,
    MARKED_RIGHT,
    MARKING,
    MET_ROOM,
    NEIGHBOURS,
    NO_PAIR_LEFT,
    NORMAL,
    OCCURRENCE_ROOM,
    OCCURRENCES_USED,
    PAIRS,
    PAIRS_SHIFT,
    PAIRS_USED,
    SCAFFOLD,
    SCAFFOLDING,
    STEPPED,
    STEPS,
    TARGET,
    THRESHOLD,
    TOKEN,
    TOKEN_ROOM,
    TOKENS,
    WANTED,
)

LOW = (1 << 32) - 1


@function
def find_head(state):
    """Correct the heap until its head is true; returns whether there is one at or above the threshold."""
    heap, pairs, shift = i64_at(state[HEAP]), i64_at(state[PAIRS]), state[PAIRS_SHIFT]
    scaffold, live, smallest = u8_at(state[SCAFFOLD]), i64_at(state[LIVE]), state[THRESHOLD]
    used = state[HEAP_USED]
    while used > 0:
        # No count rises after it was pushed, so what the heap believes is an upper bound: a head that is true is the
        # largest of all, and any other goes to where it belongs now.
        count, key = heap[0], heap[1]
        if key >= TOKEN:
            true = live[key - TOKEN] if scaffold[key - TOKEN] != 0 else np.int64(0)
        else:
            true = pairs[find_pair(pairs, shift, key) + 1]
        if true == count:
            break
        if true >= smallest:
            sink(heap, used, np.int64(0), true, key)
        else:
            used = pop(heap, used)
    state[HEAP_USED] = used
    return used > 0


@function
def lacking(state, occurrences, count):
    """What must grow before a pair can be merged, or -1; `count` and the occurrences bound the pairs that it makes."""
    made = 2 * min(occurrences, count // state[THRESHOLD], state[TOKENS] + 1)
    if state[TOKENS] >= state[TOKEN_ROOM]:
        return np.int64(GROW_TOKENS)
    if state[PAIRS_USED] + made > np.int64(1) << (63 - state[PAIRS_SHIFT]):
        return np.int64(GROW_PAIRS)
    if state[HEAP_USED] + made + 2 > state[HEAP_ROOM]:
        state[WANTED] = state[HEAP_USED] + made + 2
        return np.int64(GROW_HEAP)
    if state[OCCURRENCES_USED] + 2 * occurrences > state[OCCURRENCE_ROOM]:
        state[WANTED] = state[OCCURRENCES_USED] + 2 * occurrences
        return np.int64(GROW_OCCURRENCES)
    if occurrences > state[MET_ROOM]:
        state[WANTED] = occurrences
        return np.int64(GROW_MET)
    return np.int64(-1)


@function
def lose(pairs, shift, pair, count):
    """Take from the count of a pair, if it has an entry."""
    entry = find_pair(pairs, shift, pair)
    if pairs[entry] != 0:
        pairs[entry + 1] -= count


@function
def make(state, pair, count, occurrences):
    """Enter a pair that is made by a merge, with room for its occurrences; returns where they begin."""
    pairs, place = i64_at(state[PAIRS]), state[OCCURRENCES_USED]
    entry = find_pair(pairs, state[PAIRS_SHIFT], pair)
    pairs[entry], pairs[entry + 1] = pair + 1, count
    pairs[entry + 2], pairs[entry + 3] = place, occurrences
    state[PAIRS_USED] += 1
    state[OCCURRENCES_USED] = place + occurrences
    state[HEAP_USED] = push(i64_at(state[HEAP]), state[HEAP_USED], count, pair)
    return place


@function
def enter_after(state, right, met):
    """Count the pairs with the right neighbours; where each begins replaces its number of occurrences, -1 if rare."""
    sums, pairs, shift = i64_at(state[AFTER]), i64_at(state[PAIRS]), state[PAIRS_SHIFT]
    neighbours = i32_at(state[NEIGHBOURS] + 4 * (state[TOKEN_ROOM] + 2))
    made = np.int64(0)
    for index in range(met):
        if index + 4 < met:
            prefetch(state[PAIRS] + 32 * slot_of(pair_of(right, np.int64(neighbours[index + 4]) - 1), shift))
        y = np.int64(neighbours[index])
        count = sums[2 * y]
        lose(pairs, shift, pair_of(right, y - 1), count)
        if count >= state[THRESHOLD]:
            sums[2 * y + 1] = make(state, pair_of(state[TOKENS], y - 1), count, sums[2 * y + 1])
            made += 1
        else:
            sums[2 * y + 1] = -1
    return made


@function
def enter_before(state, left, met):
    """The same for left neighbours. One of them may be the merged pair itself, so this comes second."""
    sums, pairs, shift = i64_at(state[BEFORE]), i64_at(state[PAIRS]), state[PAIRS_SHIFT]
    neighbours = i32_at(state[NEIGHBOURS])
    made = np.int64(0)
    for index in range(met):
        if index + 4 < met:
            prefetch(state[PAIRS] + 32 * slot_of(pair_of(np.int64(neighbours[index + 4]) - 1, left), shift))
        x = np.int64(neighbours[index])
        count = sums[2 * x]
        lose(pairs, shift, pair_of(x - 1, left), count)
        if count >= state[THRESHOLD]:
            sums[2 * x + 1] = make(state, pair_of(x - 1, state[TOKENS]), count, sums[2 * x + 1])
            made += 1
        else:
            sums[2 * x + 1] = -1
    return made


@function
def merge(state, entry):
    """Merge the pair of an entry everywhere."""
    pairs = i64_at(state[PAIRS])
    pair, first, occurrences = pairs[entry] - 1, pairs[entry + 2], pairs[entry + 3]
    left, right = pair >> 32, pair & LOW
    valid, count, met_before, met_after = replace(state, left, right, first, occurrences)
    add_token(state, left, right, count)
    if enter_after(state, right, met_after) > 0:
        list_after(state, first, valid)
    if enter_before(state, left, met_before) > 0:
        list_before(state, first, valid)
    forget(state, met_before, met_after)
    pairs[entry + 1] = 0
    state[TOKENS] += 1
    state[NORMAL] += 1
    state[MARKED_LEFT], state[MARKED_RIGHT] = left, right


@function
def step(state):
    """Readmit the token at the head of the queue, or merge its pair; returns -1 or what must grow first."""
    pairs, key = i64_at(state[PAIRS]), i64_at(state[HEAP])[1]
    if key >= TOKEN:
        readmit(state, key - TOKEN)
        return np.int64(-1)
    entry = find_pair(pairs, state[PAIRS_SHIFT], key)
    status = lacking(state, pairs[entry + 3], pairs[entry + 1])
    if status < 0:
        merge(state, entry)
        state[MARKING] = state[SCAFFOLDING]
    return status


def train_bpe(state):
    """Go on for STEPS steps, to the TARGET, or until no pair is left; returns why it ended."""
    for _ in range(state[STEPS]):
        if state[MARKING] == 0:
            if state[NORMAL] >= state[TARGET]:
                return np.int64(FULL)
            if not find_head(state):
                return np.int64(LOWER_THRESHOLD) if state[THRESHOLD] > 1 else np.int64(NO_PAIR_LEFT)
            status = step(state)
            if status >= 0:
                return status
        if state[MARKING] != 0:
            # Scaffold-BPE compares the parts of the last merge with the next head, which must be true for that.
            if find_head(state):
                mark(state, state[MARKED_LEFT])
                mark(state, state[MARKED_RIGHT])
            elif state[THRESHOLD] > 1:
                return np.int64(LOWER_THRESHOLD)
            state[MARKING] = 0
    return np.int64(STEPPED)
