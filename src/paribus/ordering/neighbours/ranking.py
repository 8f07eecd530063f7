"""Exact, repeatable ranking of candidate neighbours.

faiss finds candidates in single precision or by quantized vectors. Here the cosines of the candidates are computed
again, in double precision and in a fixed order, so that lists of neighbours depend on neither.
"""

import numpy as np
import numpy.typing as npt

from paribus.native.loader import address, kernel

SINGLE_PRECISION_ERROR = np.float32(1e-5)
"""More than an inner product of unit vectors in single precision can be wrong by."""

Vectors = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int64]
Neighbours = tuple[Ids, Vectors]


def rank(queries: Vectors, base: Vectors, candidates: Ids, itself: Ids, count: int) -> Neighbours:
    """The best `count` of each query's candidates and their cosines, both (queries, count).

    `queries` (q, d) and `base` (n, d) are float32 with unit rows; `candidates` (q, c) are rows of `base`, negative
    where there is none; `itself` (q,) is the row that is the query itself, which is left out, or -1. Largest cosine
    first, of equal ones the smallest row; -1 and 0.0 where there are fewer.
    """
    wanted = np.where(candidates == itself[:, None], -1, candidates)
    cosines = np.clip(scores(queries, base, wanted), -1, 1).astype(np.float32)
    cosines[wanted < 0] = -np.inf
    best = np.lexsort((wanted, -cosines), axis=1)[:, :count]
    ids, cosines = np.take_along_axis(wanted, best, axis=1), np.take_along_axis(cosines, best, axis=1)
    cosines[ids < 0] = 0
    missing = ((0, 0), (0, count - ids.shape[1]))
    return np.pad(ids, missing, constant_values=-1), np.pad(cosines, missing)


def scores(queries: Vectors, base: Vectors, candidates: Ids) -> npt.NDArray[np.float64]:
    """Inner product of each query with each of its candidates, (q, c) float64; 0 where there is none."""
    found, sums = np.zeros(candidates.shape), np.zeros(16)
    listed = np.ascontiguousarray(candidates)
    arrays = [np.ascontiguousarray(array) for array in (queries, base)]
    form = (*candidates.shape, queries.shape[1])
    kernel("score_candidates")(*map(address, arrays), address(listed), *form, address(sums), address(found))
    return found


def rank_all(queries: Vectors, base: Vectors, itself: Ids, count: int) -> Neighbours:
    """`rank` with every row of `base` a candidate; equal queries share the search."""
    distinct, owner = np.unique(queries, axis=0, return_inverse=True)
    ids = np.full((len(queries), count), -1, dtype=np.int64)
    cosines = np.zeros((len(queries), count), dtype=np.float32)
    for group, vector in enumerate(distinct):
        # One more than asked for, since each member of the group leaves itself out.
        candidates = _above_the_last(base, vector, min(count + 1, len(base)))
        members = np.flatnonzero(owner.reshape(-1) == group)
        shared = np.broadcast_to(candidates, (len(members), len(candidates)))
        ids[members], cosines[members] = rank(queries[members], base, shared, itself[members], count)
    return ids, cosines


def _above_the_last(base: Vectors, vector: Vectors, count: int) -> Ids:
    """The `count` rows most like `vector`, of equal ones the first."""
    rough = base @ vector
    threshold = np.partition(rough, len(rough) - count)[len(rough) - count] - SINGLE_PRECISION_ERROR
    close = np.flatnonzero(rough >= threshold)
    exact = np.clip(scores(vector[None], base, close[None])[0], -1, 1)
    return close[np.lexsort((close, -exact.astype(np.float32)))[:count]]


def merge(first: Neighbours, second: Neighbours, count: int) -> Neighbours:
    """The best `count` of two lists of distinct neighbours a document, in the order of `rank`."""
    ids = np.concatenate([first[0], second[0]], axis=1)
    cosines = np.concatenate([first[1], second[1]], axis=1)
    weight = np.where(ids < 0, -np.inf, cosines)
    best = np.lexsort((ids, -weight), axis=1)[:, :count]
    return np.take_along_axis(ids, best, axis=1), np.take_along_axis(cosines, best, axis=1)
