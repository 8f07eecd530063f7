"""Encoding by a trie of tokens: longest token first, longest from the left, and the best segmentation."""

import numpy as np

from paribus.native.compiler import address_of, f64_at, function, i32_at, inline, u64_at
from paribus.tokenization.kernels import layout as at
from paribus.tokenization.kernels.classify import ONE, ZERO
from paribus.tokenization.kernels.merge import heapify, pop, push

FEW = 64
LOW = np.uint64(0xFFFFFFFF)
BITS = np.uint64(32)
LARGE = 100_000.0
"""Sums of SentencePiece beyond it restart: 32 bits would have too few for differences."""
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_UNIT, _NODE, _TOKEN, _LAST = (
    np.uint64(at.UNIT_BITS),
    np.uint64(at.NODE_BITS),
    np.uint64(at.UNIT_BITS + at.NODE_BITS),
    np.uint64(63),
)
_UNITS, _NODES = np.uint64((1 << at.UNIT_BITS) - 1), np.uint64((1 << at.NODE_BITS) - 1)
_TOKENS = np.uint64((1 << at.RANK_BITS) - 1)


# Longest-token-first encoding: the longest token anywhere in the pre-token, then the next longest in what is left.
#
# Lian et al., *LBPE*, Algorithm 1. Every position offers the longest token that begins there; the longest offer,
# leftmost at equal length, is taken, and offers that reach into it are shortened to their longest prefix that is a
# token.
@function
def shorten(lengths, shorter, offers, spans, start):
    """Cut the offers before `start` that reach it, back to the last taken unit (span 0)."""
    place = start - 1
    # Beyond a taken unit no offer reaches: it was cut when that unit was taken.
    while place >= 0 and spans[place] > 0:
        if spans[place] > start - place:
            rank = offers[place]
            # A unit is a token by itself, so there is a prefix that is short enough.
            while lengths[rank] > start - place:
                rank = shorter[rank]
            offers[place], spans[place] = rank, lengths[rank]
        place -= 1


@function
def place_few(lengths, shorter, offers, spans, chosen, count):
    """Choose tokens by repeatedly searching all offers for the longest."""
    left = count
    while left > 0:
        best, start = np.int32(0), np.int64(0)
        for index in range(count):
            # Strictly longer, so that the leftmost of one length is taken.
            if spans[index] > best:
                best, start = spans[index], np.int64(index)
        chosen[start] = offers[start]
        for index in range(start, start + best):
            spans[index] = 0
        shorten(lengths, shorter, offers, spans, start)
        left -= best


@function
def place_many(lengths, shorter, offers, spans, chosen, count, heap):
    """Choose tokens through a heap; an offer that reaches a taken unit is cut when it is popped, and offered again."""
    for index in range(count):
        # The heap gives the smallest: the length is taken from a large number, and ties go to the left.
        heap[index] = np.uint64(0x7FFFFFFF - spans[index]) << BITS | np.uint64(index)
    size = np.int64(count)
    heapify(heap, size)
    while size > 0:
        start = np.int64(heap[0] & LOW)
        size = pop(heap, size)
        # Its own first unit was taken, by a longer token or one further left.
        if spans[start] == 0:
            continue
        rank = offers[start]
        room = np.int64(0)
        while room < lengths[rank] and spans[start + room] > 0:
            room += 1
        if room == lengths[rank]:
            chosen[start] = rank
            for index in range(start, start + room):
                spans[index] = 0
            continue
        while lengths[rank] > room:
            rank = shorter[rank]
        offers[start], spans[start] = rank, lengths[rank]
        size = push(heap, size, np.uint64(0x7FFFFFFF - spans[start]) << BITS | np.uint64(start))


@function
def place_longest_first(model, lengths, shorter, units, count, work):
    """Replace `units` by the ranks of their tokens; returns how many, or -1 where a unit is no token."""
    base = address_of(work)
    offers, spans, chosen = i32_at(base), i32_at(base + 4 * count), i32_at(base + 8 * count)
    for index in range(count):
        rank, length = longest(model, units, index, count)
        if rank < 0:
            return np.int64(-1)
        offers[index], spans[index], chosen[index] = np.int32(rank), np.int32(length), np.int32(-1)
    if count <= FEW:
        place_few(lengths, shorter, offers, spans, chosen, count)
    else:
        place_many(lengths, shorter, offers, spans, chosen, count, u64_at(base + 16 * count))
    left = np.int64(0)
    for index in range(count):
        if chosen[index] >= 0:
            units[left] = chosen[index]
            left += 1
    return left


# Longest match from the left, WordPiece's encoding (Wu et al. 2016; Song et al. 2021, section 3).
@function
def match_left_to_right(model, units, count):
    """Replace `units` by the ranks of their tokens; returns how many, or -1 where a unit is no token."""
    start = left = np.int64(0)
    while start < count:
        rank, length = longest(model, units, start, count)
        if rank < 0:
            return np.int64(-1)
        units[left] = np.int32(rank)
        start += length
        left += 1
    return left


# The segmentation of largest summed score (Unigram, Kudo 2018), or of fewest tokens.
#
# Sums run from the end of the pre-token, so they are the same floats everywhere. Ties go to fewer tokens, then to the
# longer first token, then to the longer second one, and so on. The library SentencePiece sums from the beginning, keeps
# 32-bit floats, which begin anew where they become large, and takes the longest last token of equals; imported
# tokenizers do the same.
@function
def best_path(model, lengths, scores, scored, units, count, work):
    """Replace `units` by the ranks of their tokens; returns how many, or -1 where there is no segmentation.

    With `scored` 0 all scores count as equal.
    """
    base = address_of(work)
    best = f64_at(base)
    tokens, choices = i32_at(base + 8 * (count + 1)), i32_at(base + 12 * (count + 1))
    best[count], tokens[count], choices[count] = 0.0, np.int32(0), np.int32(0)
    for start in range(count - 1, -1, -1):
        node = np.int64(0)
        choices[start] = -1
        for end in range(start + 1, count + 1):
            node = follow(model, units, start, end - 1, node)
            if node < 0:
                break
            rank = token_of(model, node)
            if rank < 0 or choices[end] < 0:
                continue
            value = (scores[rank] if scored != 0 else 0.0) + best[end]
            number = tokens[end] + np.int32(1)
            # Ends ascend, so of equals the longer first token comes last and is kept.
            if choices[start] < 0 or value > best[start] or (value == best[start] and number <= tokens[start]):
                best[start], tokens[start], choices[start] = value, number, np.int32(rank)
    if choices[0] < 0:
        return np.int64(-1)
    start = left = np.int64(0)
    while start < count:
        rank = choices[start]
        units[left] = rank
        start += np.int64(lengths[rank])
        left += 1
    return left


@function
def begin_anew(best, choices, start, last):
    """Subtract the sum at `start` from the sums of `start` to `last`."""
    offset = best[start]
    for end in range(start, last + 1):
        if end == start or choices[end] >= 0:
            best[end] = np.float64(np.float32(best[end] - offset))


@function
def best_path_from_left(model, lengths, scores, units, count, work):
    """The best path as the library SentencePiece finds it: sums of 32 bits that begin anew where they become large."""
    base = address_of(work)
    best, choices = f64_at(base), i32_at(base + 8 * (count + 1))
    best[0] = 0.0
    for end in range(count + 1):
        choices[end] = np.int32(-1)
    reached = np.int64(0)
    for start in range(count):
        if start > 0 and choices[start] < 0:
            continue
        if abs(best[start]) > LARGE:
            begin_anew(best, choices, start, reached)
        node = np.int64(0)
        for end in range(start + 1, count + 1):
            node = follow(model, units, start, end - 1, node)
            if node < 0:
                break
            rank = token_of(model, node)
            if rank < 0:
                continue
            reached = max(reached, np.int64(end))
            value = np.float64(np.float32(scores[rank] + best[start]))
            # Starts ascend, so of equals the longest last token stays.
            if choices[end] < 0 or value > best[end]:
                best[end], choices[end] = value, np.int32(rank)
    if count > 0 and choices[count] < 0:
        return np.int64(-1)
    end = place = np.int64(count)
    while end > 0:
        place -= 1
        units[place] = choices[end]
        end -= np.int64(lengths[choices[end]])
    for index in range(place, count):
        units[index - place] = units[index]
    return count - place


# Tokens as paths of units. The children of a node lie together, by unit, and the children of the first follow them.
#
# A node is one word: its unit (20 bits), its first child (22 bits; 0 without children), one more than the rank of the
# token that ends there (21 bits), and whether it is the last child (1 bit). Nodes with many children (`WIDE` in place
# of the first) have them in a hash table too: the node (22 bits), the unit (20 bits) and the child (22 bits) in one
# word. Every walk begins at the root, so the nodes that one and two of the first 256 units lead to have a table of
# their own, `heads`: those of two, by the first and the second, and after them those of one. Small tables stay in the
# caches.
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
    """The node that `unit` leads to; without one, adds the edge to `child` and returns that."""
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
    if child == at.WIDE:
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
    if index == start and unit < at.DIRECT_RANKS:
        return np.int64(i32_at(model[at.HEADS])[at.DIRECT_RANKS * at.DIRECT_RANKS + unit])
    # Both units are below a power of two if their bitwise or is.
    if index == start + 1 and (units[start] | unit) < at.DIRECT_RANKS:
        return np.int64(i32_at(model[at.HEADS])[at.DIRECT_RANKS * np.int64(units[start]) + unit])
    return find_child(u64_at(model[at.NODES]), u64_at(model[at.EDGES]), model[at.EDGES_SHIFT], node, unit)


@inline
def token_of(model, node):
    """Rank of the token that ends at a node, or -1."""
    return np.int64(u64_at(model[at.NODES])[node] >> _TOKEN & _TOKENS) - 1


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
