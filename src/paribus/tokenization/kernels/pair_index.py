"""The pairs of a corpus of `symbols` with their counts and where they occur."""

import numpy as np

from paribus.native.intrinsics import function, i32_at, i64_at, u8_at
from paribus.tokenization.kernels.pair_queue import find_pair, pair_of, push
from paribus.tokenization.kernels.training_layout import (
    GROW_PAIRS,
    HEAP,
    HEAP_USED,
    LENGTHS,
    LIVE,
    OCCURRENCES,
    PAIRS,
    PAIRS_SHIFT,
    PAIRS_USED,
    POSITION,
    POSITION_BITS,
    SCAFFOLD,
    SEPARATOR,
    SYMBOL_COUNT,
    SYMBOLS,
    THRESHOLD,
    TOKEN,
    TOKENS,
    WEIGHTS,
    WORD,
)


def count_pairs(state):
    """Count all adjacent pairs, overlaps included, from POSITION in word WORD on; returns 0 or GROW_PAIRS."""
    symbols, lengths, weights = i32_at(state[SYMBOLS]), i32_at(state[LENGTHS]), i64_at(state[WEIGHTS])
    pairs, shift, used = i64_at(state[PAIRS]), state[PAIRS_SHIFT], state[PAIRS_USED]
    # Half of the slots: searches in a fuller table grow long.
    room = np.int64(1) << (63 - shift)
    position, word = state[POSITION], state[WORD]
    while position + 1 < state[SYMBOL_COUNT]:
        left = np.int64(symbols[position])
        if left == SEPARATOR:
            position += 1
            continue
        following = position + lengths[left]
        right = np.int64(symbols[following])
        if right == SEPARATOR:
            word += 1
        else:
            entry = find_pair(pairs, shift, pair_of(left, right))
            if pairs[entry] == 0:
                if used >= room:
                    # The caller gives a larger table, and counting goes on from here.
                    state[POSITION], state[WORD], state[PAIRS_USED] = position, word, used
                    return np.int64(GROW_PAIRS)
                pairs[entry] = pair_of(left, right) + 1
                used += 1
            pairs[entry + 1] += weights[word]
            pairs[entry + 3] += 1
        position = following
    state[PAIRS_USED] = used
    return np.int64(0)


def move_pairs(old, size, pairs, shift, smallest):
    """Put the entries of `size` slots whose count is at least `smallest` into an empty table; returns how many."""
    moved = np.int64(0)
    for slot in range(size):
        if old[4 * slot] != 0 and old[4 * slot + 1] >= smallest:
            entry = find_pair(pairs, shift, old[4 * slot] - 1)
            for part in range(4):
                pairs[entry + part] = old[4 * slot + part]
            moved += 1
    return moved


@function
def give_room(state):
    """Give each pair its stretch of the occurrences, empty yet, and its place in the heap."""
    pairs, heap, used, place = i64_at(state[PAIRS]), i64_at(state[HEAP]), np.int64(0), np.int64(0)
    for slot in range(np.int64(1) << (64 - state[PAIRS_SHIFT])):
        if pairs[4 * slot] != 0:
            pairs[4 * slot + 2] = place
            place += pairs[4 * slot + 3]
            pairs[4 * slot + 3] = 0
            used = push(heap, used, pairs[4 * slot + 1], pairs[4 * slot] - 1)
    state[HEAP_USED] = used
    return place


@function
def push_scaffolds(state):
    """Put the scaffold tokens into the heap that are frequent enough."""
    scaffold, live, heap, used = u8_at(state[SCAFFOLD]), i64_at(state[LIVE]), i64_at(state[HEAP]), state[HEAP_USED]
    for token in range(state[TOKENS]):
        if scaffold[token] != 0 and live[token] >= state[THRESHOLD]:
            used = push(heap, used, live[token], TOKEN + token)
    state[HEAP_USED] = used


def locate_pairs(state):
    """List the occurrences of the counted pairs, in order of position, and fill the heap; returns how many."""
    symbols, lengths = i32_at(state[SYMBOLS]), i32_at(state[LENGTHS])
    pairs, shift = i64_at(state[PAIRS]), state[PAIRS_SHIFT]
    occurrences = i64_at(state[OCCURRENCES])
    total = give_room(state)
    push_scaffolds(state)
    position, word = np.int64(0), np.int64(0)
    while position + 1 < state[SYMBOL_COUNT]:
        left = np.int64(symbols[position])
        if left == SEPARATOR:
            position += 1
            continue
        following = position + lengths[left]
        right = np.int64(symbols[following])
        if right == SEPARATOR:
            word += 1
        else:
            entry = find_pair(pairs, shift, pair_of(left, right))
            if pairs[entry] != 0:
                occurrences[pairs[entry + 2] + pairs[entry + 3]] = word << POSITION_BITS | position
                pairs[entry + 3] += 1
        position = following
    return total
