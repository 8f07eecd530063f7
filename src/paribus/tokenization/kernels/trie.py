"""Tokens as paths of units: nodes are numbered, the root is 0, edges lie in a hash table.

An edge is one word: the node (22 bits), the unit (20 bits) and the child (22 bits). What is small stays in the caches.
"""

import numpy as np

from paribus.tokenization.kernels.classes import ONE, ZERO, function, inline
from paribus.tokenization.kernels.layout import NODE_BITS, UNIT_BITS

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_UNIT, _NODE = np.uint64(UNIT_BITS), np.uint64(NODE_BITS)
_CHILD = np.uint64((1 << NODE_BITS) - 1)


@inline
def step(trie, shift, node, unit):
    """The node that `unit` leads to, or -1."""
    key = np.uint64(node) << _UNIT | np.uint64(unit)
    mask = (ONE << np.uint64(64 - shift)) - ONE
    slot = key * GOLDEN >> np.uint64(shift)
    while True:
        edge = trie[np.int64(slot)]
        if edge == ZERO:
            return np.int64(-1)
        if edge >> _NODE == key:
            return np.int64(edge & _CHILD)
        slot = slot + ONE & mask


@function
def add_edge(trie, shift, node, unit, child):
    """The node that `unit` leads to, which becomes `child` where there is none."""
    key = np.uint64(node) << _UNIT | np.uint64(unit)
    mask = (ONE << np.uint64(64 - shift)) - ONE
    slot = key * GOLDEN >> np.uint64(shift)
    while trie[np.int64(slot)] != ZERO:
        edge = trie[np.int64(slot)]
        if edge >> _NODE == key:
            return np.int64(edge & _CHILD)
        slot = slot + ONE & mask
    trie[np.int64(slot)] = key << _NODE | np.uint64(child)
    return child


@function
def longest(trie, shift, node_tokens, units, start, end):
    """Rank of the longest token that begins at `start`, or -1."""
    node, found = np.int64(0), np.int64(-1)
    for index in range(start, end):
        node = step(trie, shift, node, units[index])
        if node < 0:
            break
        if node_tokens[node] >= 0:
            found = np.int64(node_tokens[node])
    return found


def build_trie(units, offsets, ranks, count, trie, shift, node_tokens, shorter):
    """Insert `count` tokens (units of token i: offsets[i] to offsets[i + 1]); returns the number of nodes.

    `node_tokens` begins as -1 everywhere. `shorter[rank]` becomes the rank of the longest proper prefix that is a
    token of those inserted, or -1.
    """
    nodes = np.int64(1)
    for token in range(count):
        node = np.int64(0)
        for index in range(offsets[token], offsets[token + 1]):
            node = add_edge(trie, shift, node, units[index], nodes)
            if node == nodes:
                nodes += 1
        node_tokens[node] = ranks[token]
    for token in range(count):
        node, prefix = np.int64(0), np.int64(-1)
        for index in range(offsets[token], offsets[token + 1] - 1):
            node = step(trie, shift, node, units[index])
            if node_tokens[node] >= 0:
                prefix = np.int64(node_tokens[node])
        shorter[ranks[token]] = prefix
    return nodes
