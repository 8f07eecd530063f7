"""Longest-token-first encoding: the longest token anywhere in the pre-token, then the next longest in what is left.

Lian et al., *LBPE*, Algorithm 1. Every position offers the longest token that begins there; the longest offer,
leftmost at equal length, is taken, and offers that reach into it are shortened to their longest prefix that is a token.
"""

import numpy as np

from paribus.native.intrinsics import address_of, function, i32_at, u64_at
from paribus.tokenization.kernels.heap import heapify, pop, push
from paribus.tokenization.kernels.trie import longest

FEW = 64
LOW = np.uint64(0xFFFFFFFF)
BITS = np.uint64(32)


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
    """Choose by searching all offers for the longest, again and again."""
    left = count
    while left > 0:
        best, start = np.int32(0), np.int64(0)
        for index in range(count):
            # Only what is longer, so that the leftmost of one length is taken.
            if spans[index] > best:
                best, start = spans[index], np.int64(index)
        chosen[start] = offers[start]
        for index in range(start, start + best):
            spans[index] = 0
        shorten(lengths, shorter, offers, spans, start)
        left -= best


@function
def place_many(lengths, shorter, offers, spans, chosen, count, heap):
    """Choose through a heap; an offer that reaches a taken unit is cut when its turn comes, and offered again."""
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
