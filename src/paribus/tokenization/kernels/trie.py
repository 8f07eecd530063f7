"""Tokens as paths of units: nodes are numbered, the root is 0, edges lie in a hash table.

An edge is one word: the node (22 bits), the unit (20 bits) and the child (22 bits). What is small stays in the caches.
Every walk begins at the root, so the nodes that one and two of the first 256 units lead to have a table of their own,
`heads`: those of two, by the first and the second, and after them those of one.
"""

import numpy as np

from paribus.tokenization.kernels.classes import ONE, ZERO, function, inline
from paribus.tokenization.kernels.intrinsics import i32_at, u64_at
from paribus.tokenization.kernels.layout import (
    DIRECT_RANKS,
    HEADS,
    NODE_BITS,
    NODE_TOKENS,
    TRIE,
    TRIE_SHIFT,
    UNIT_BITS,
)

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


@inline
def follow(heads, trie, shift, units, start, index, node):
    """The node of units[start : index + 1], or -1; `node` is that of one unit less."""
    unit = units[index]
    if index == start and unit < DIRECT_RANKS:
        return np.int64(heads[DIRECT_RANKS * DIRECT_RANKS + unit])
    if index == start + 1 and (units[start] | unit) < DIRECT_RANKS:
        return np.int64(heads[DIRECT_RANKS * np.int64(units[start]) + unit])
    return step(trie, shift, node, unit)


@function
def longest(model, units, start, end):
    """Rank of the longest token that begins at `start`, or -1."""
    heads, trie, shift = i32_at(model[HEADS]), u64_at(model[TRIE]), model[TRIE_SHIFT]
    node_tokens = i32_at(model[NODE_TOKENS])
    node, found = np.int64(0), np.int64(-1)
    for index in range(start, end):
        node = follow(heads, trie, shift, units, start, index, node)
        if node < 0:
            break
        if node_tokens[node] >= 0:
            found = np.int64(node_tokens[node])
    return found


@function
def fill_heads(trie, shift, heads):
    """Enter the nodes that one and two of the first 256 units lead to, -1 where there is none."""
    for first in range(DIRECT_RANKS):
        node = step(trie, shift, 0, first)
        heads[DIRECT_RANKS * DIRECT_RANKS + first] = np.int32(node)
        for second in range(DIRECT_RANKS):
            heads[DIRECT_RANKS * first + second] = np.int32(-1 if node < 0 else step(trie, shift, node, second))


def build_trie(units, offsets, ranks, count, trie, shift, heads, node_tokens, shorter):
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
    fill_heads(trie, shift, heads)
    return nodes
