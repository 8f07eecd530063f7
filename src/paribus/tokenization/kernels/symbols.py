"""Words as one flat array of tokens, and tokens as their units.

A token of n units that begins at position p stands at p and at p + n - 1, so the token before a position is found at
the position before it. Separators lie around every word. Inside a token its own halves may stand, but never where one
of them could be taken for a token that begins there: GONE stands there, or the token itself.
"""

import numpy as np

from paribus.tokenization.kernels.classes import decode
from paribus.tokenization.kernels.training_layout import SEPARATOR


def lay_out_bytes(spellings, offsets, words, weights, continuation, symbols, frequencies):
    """Write the bytes of each word, `continuation` added to all but its first; returns how many positions there are.

    Adds up the `frequencies` of units.
    """
    symbols[0] = SEPARATOR
    position = np.int64(1)
    for word in range(words):
        added = np.int64(0)
        for place in range(offsets[word], offsets[word + 1]):
            unit = np.int64(spellings[place]) + added
            symbols[position] = unit
            frequencies[unit] += weights[word]
            added = continuation
            position += 1
        symbols[position] = SEPARATOR
        position += 1
    return position


def lay_out_characters(spellings, offsets, words, weights, ranks, continuation, symbols, frequencies):
    """The same for characters, by the rank of each codepoint; every character has one."""
    symbols[0] = SEPARATOR
    position = np.int64(1)
    for word in range(words):
        place, added = offsets[word], np.int64(0)
        while place < offsets[word + 1]:
            codepoint, size = decode(spellings, place, offsets[word + 1])
            unit = np.int64(ranks[codepoint]) + added
            symbols[position] = unit
            frequencies[unit] += weights[word]
            added = continuation
            position += 1
            place += size
        symbols[position] = SEPARATOR
        position += 1
    return position


def observe_characters(spellings, size, seen):
    """Set `seen` of every codepoint; returns how many characters there are."""
    place, count = np.int64(0), np.int64(0)
    while place < size:
        codepoint, length = decode(spellings, place, size)
        seen[codepoint] = 1
        place += length
        count += 1
    return count


def spell_tokens(left, right, tokens, offsets, units):
    """Write the units of each token, whose parents come before it; `offsets` say where."""
    for token in range(tokens):
        place = offsets[token]
        if left[token] < 0:
            units[place] = token
            continue
        for parent in (left[token], right[token]):
            for index in range(offsets[parent], offsets[parent + 1]):
                units[place] = units[index]
                place += 1
    return tokens
