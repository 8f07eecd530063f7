"""The segmentation of largest summed score (Unigram, Kudo 2018), or of fewest tokens.

Sums run from the end of the pre-token, so they are the same floats everywhere. Ties go to fewer tokens, then to the
longer first token, then to the longer second one, and so on. The library SentencePiece sums from the beginning, keeps
32-bit floats, which begin anew where they become large, and takes the longest last token of equals; imported tokenizers
do the same.
"""

import numpy as np

from paribus.native.intrinsics import address_of, f64_at, function, i32_at
from paribus.tokenization.kernels.trie import follow, token_of

LARGE = 100_000.0
"""Sums of SentencePiece beyond it begin anew: 32 bits would have too few left for differences."""


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
    """Count the sums of `start` to `last` from that of `start`."""
    offset = best[start]
    for end in range(start, last + 1):
        if end == start or choices[end] >= 0:
            best[end] = np.float64(np.float32(best[end] - offset))


@function
def best_path_from_left(model, lengths, scores, units, count, work):
    """The same as the library SentencePiece finds it: sums of 32 bits that begin anew where they become large."""
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
