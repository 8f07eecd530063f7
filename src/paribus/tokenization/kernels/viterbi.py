"""The segmentation of largest summed score (Unigram, Kudo 2018), or of fewest tokens.

Sums run from the end of the pre-token, so they are the same floats everywhere. Ties go to fewer tokens, then to the
longer first token, then to the longer second one, and so on.
"""

import numpy as np

from paribus.native.intrinsics import address_of, f64_at, i32_at
from paribus.tokenization.kernels.classes import function
from paribus.tokenization.kernels.trie import follow, token_of


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
