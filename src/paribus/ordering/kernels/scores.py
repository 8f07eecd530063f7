"""Inner products of queries with candidates, in double precision and in one order of additions."""

import numpy as np

from paribus.native.intrinsics import address_of, prefetch

_ABREAST = 16
_LINE = 16


def score_candidates(queries, base, candidates, rows, width, dimensions, sums, scores):
    """Write the inner product of every query with each of its candidates.

    `queries` is (rows, dimensions), `base` (n, dimensions), `candidates` and `scores` (rows, width). A negative
    candidate is none; `sums` has room for 16 numbers.
    """
    whole = dimensions // _ABREAST * _ABREAST
    lines = address_of(base)
    for row in range(rows):
        query = row * dimensions
        for place in range(row * width, (row + 1) * width):
            if candidates[place] < 0:
                continue
            vector = candidates[place] * dimensions
            if place + 1 < (row + 1) * width and candidates[place + 1] >= 0:
                ahead = lines + 4 * candidates[place + 1] * dimensions
                for line in range(0, min(dimensions, 256), _LINE):
                    prefetch(ahead + 4 * line)
            for lane in range(_ABREAST):
                sums[lane] = 0.0
            for first in range(0, whole, _ABREAST):
                for lane in range(_ABREAST):
                    left = np.float64(queries[query + first + lane])
                    sums[lane] += left * np.float64(base[vector + first + lane])
            total = 0.0
            for lane in range(_ABREAST):
                total += sums[lane]
            for number in range(whole, dimensions):
                total += np.float64(queries[query + number]) * np.float64(base[vector + number])
            scores[place] = total
    return np.int64(0)
