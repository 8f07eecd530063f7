"""Tokens as paths of units: nodes are numbered, the root is 0, edges lie in a hash table."""

import numpy as np

from paribus.tokenization.kernels.classes import ALL, function, inline
from paribus.tokenization.kernels.hashing import find, put


@inline
def step(trie, shift, node, unit):
    """The node that `unit` leads to, or -1."""
    child = find(trie, shift, np.uint64(node) << np.uint64(32) | np.uint64(unit))
    return np.int64(-1) if child == ALL else np.int64(child)


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
            key = np.uint64(node) << np.uint64(32) | np.uint64(units[index])
            child = np.int64(put(trie, shift, key, np.uint64(nodes)))
            if child == nodes:
                nodes += 1
            node = child
        node_tokens[node] = ranks[token]
    for token in range(count):
        node, prefix = np.int64(0), np.int64(-1)
        for index in range(offsets[token], offsets[token + 1] - 1):
            node = step(trie, shift, node, units[index])
            if node_tokens[node] >= 0:
                prefix = np.int64(node_tokens[node])
        shorter[ranks[token]] = prefix
    return nodes
