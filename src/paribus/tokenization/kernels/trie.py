"""Tokens as paths of units. The children of a node are neighbours, by unit, and the children of the first follow them.

A node is one word: its unit (20 bits), its first child (22 bits; 0 without children), one more than the rank of the
token that ends there (21 bits), and whether it is the last child (1 bit). Nodes with many children (`WIDE` in place of
the first) have them in a hash table too: the node (22 bits), the unit (20 bits) and the child (22 bits) in one word.
Every walk begins at the root, so the nodes that one and two of the first 256 units lead to have a table of their own,
`heads`: those of two, by the first and the second, and after them those of one. What is small stays in the caches.
"""

import numpy as np

from paribus.native.intrinsics import function, i32_at, inline, u64_at
from paribus.tokenization.kernels.classes import ONE, ZERO
from paribus.tokenization.kernels.layout import (
    DIRECT_RANKS,
    EDGES,
    EDGES_SHIFT,
    HEADS,
    NODE_BITS,
    NODES,
    RANK_BITS,
    UNIT_BITS,
    WIDE,
)

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_UNIT, _NODE, _TOKEN, _LAST = (
    np.uint64(UNIT_BITS),
    np.uint64(NODE_BITS),
    np.uint64(UNIT_BITS + NODE_BITS),
    np.uint64(63),
)
_UNITS, _NODES = np.uint64((1 << UNIT_BITS) - 1), np.uint64((1 << NODE_BITS) - 1)
_TOKENS = np.uint64((1 << RANK_BITS) - 1)


@inline
def edge_key(node, unit):
    """The key of an edge."""
    return np.uint64(node) << _UNIT | np.uint64(unit)


@inline
def find_edge(edges, shift, node, unit):
    """The child that `unit` leads to from a node all of whose edges are in the hash table, or -1."""
    key = edge_key(node, unit)
    mask = (ONE << np.uint64(64 - shift)) - ONE
    slot = key * GOLDEN >> np.uint64(shift)
    while True:
        edge = edges[np.int64(slot)]
        if edge == ZERO:
            return np.int64(-1)
        if edge >> _NODE == key:
            return np.int64(edge & _NODES)
        slot = slot + ONE & mask


@function
def add_edge(edges, shift, node, unit, child):
    """The node that `unit` leads to, which becomes `child` where there is none."""
    key = edge_key(node, unit)
    mask = (ONE << np.uint64(64 - shift)) - ONE
    slot = key * GOLDEN >> np.uint64(shift)
    while edges[np.int64(slot)] != ZERO:
        edge = edges[np.int64(slot)]
        if edge >> _NODE == key:
            return np.int64(edge & _NODES)
        slot = slot + ONE & mask
    edges[np.int64(slot)] = key << _NODE | np.uint64(child)
    return child


@inline
def find_child(nodes, edges, shift, node, unit):
    """The child that `unit` leads to, or -1."""
    child = np.int64(nodes[node] >> _UNIT & _NODES)
    if child == 0:
        return np.int64(-1)
    if child == WIDE:
        return find_edge(edges, shift, node, unit)
    while True:
        found = nodes[child]
        if found & _UNITS == np.uint64(unit):
            return child
        if found >> _LAST != ZERO:
            return np.int64(-1)
        child += 1


@inline
def follow(model, units, start, index, node):
    """The node of units[start : index + 1], or -1; `node` is that of one unit less."""
    unit = units[index]
    if index == start and unit < DIRECT_RANKS:
        return np.int64(i32_at(model[HEADS])[DIRECT_RANKS * DIRECT_RANKS + unit])
    # Both are small where their bits together are.
    if index == start + 1 and (units[start] | unit) < DIRECT_RANKS:
        return np.int64(i32_at(model[HEADS])[DIRECT_RANKS * np.int64(units[start]) + unit])
    return find_child(u64_at(model[NODES]), u64_at(model[EDGES]), model[EDGES_SHIFT], node, unit)


@inline
def token_of(model, node):
    """Rank of the token that ends at a node, or -1."""
    return np.int64(u64_at(model[NODES])[node] >> _TOKEN & _TOKENS) - 1


@function
def longest(model, units, start, end):
    """Rank of the longest token that begins at `start`, or -1, and how many units it has."""
    node, found, length = np.int64(0), np.int64(-1), np.int64(0)
    for index in range(start, end):
        node = follow(model, units, start, index, node)
        if node < 0:
            break
        rank = token_of(model, node)
        if rank >= 0:
            found, length = rank, np.int64(index + 1 - start)
    return found, length


def grow_trie(units, offsets, ranks, count, edges, shift, parents, labels, tokens, shorter):
    """Insert `count` tokens (units of token i: offsets[i] to offsets[i + 1]); returns the number of nodes.

    Nodes are numbered as they come, the root is 0, and all edges are in the hash table, which begins as zeros. Every
    node gets its parent, the unit that leads to it, and the rank of the token that ends there (these begin as -1).
    `shorter[rank]` becomes the rank of the longest proper prefix that is a token of those inserted, or -1.
    """
    number = np.int64(1)
    for token in range(count):
        node = np.int64(0)
        for index in range(offsets[token], offsets[token + 1]):
            child = add_edge(edges, shift, node, units[index], number)
            if child == number:
                parents[child], labels[child] = np.int32(node), units[index]
                number += 1
            node = child
        tokens[node] = ranks[token]
    # Which prefixes are tokens can be said only now, when all of them are in.
    for token in range(count):
        node, prefix = np.int64(0), np.int64(-1)
        for index in range(offsets[token], offsets[token + 1] - 1):
            node = find_edge(edges, shift, node, units[index])
            if tokens[node] >= 0:
                prefix = np.int64(tokens[node])
        shorter[ranks[token]] = prefix
    return number


def number_nodes(order, begins, count, numbers, stack):
    """Number the nodes so that siblings are neighbours and the children of the first child follow; returns 0.

    The children of node i are order[begins[i] : begins[i + 1]]; `stack` has room for all nodes.
    """
    number, size = np.int32(1), np.int64(1)
    numbers[0], stack[0] = np.int32(0), np.int32(0)
    while size > 0:
        size -= 1
        node = stack[size]
        begin, end = begins[node], begins[node + 1]
        for index in range(begin, end):
            numbers[order[index]] = number
            number += np.int32(1)
        # The first child goes on top, so that its children get the next numbers.
        for index in range(end - 1, begin - 1, -1):
            stack[size] = order[index]
            size += 1
    return 0


def fill_edges(froms, units, children, count, edges, shift):
    """Enter edges into a hash table of zeros."""
    for index in range(count):
        add_edge(edges, shift, froms[index], units[index], np.int64(children[index]))
    return 0
