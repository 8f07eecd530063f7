"""Exact, repeatable ranking of candidate neighbours.

faiss finds candidates in single precision, and its last bits depend on the number of threads. Here the cosines of the
candidates are computed again in double precision and in a fixed order, so that lists of neighbours do not.
"""

import numpy as np
import numpy.typing as npt

ROWS_AT_ONCE = 256
SINGLE_PRECISION_ERROR = np.float32(1e-5)
"""More than an inner product of unit vectors in single precision can be wrong by."""

Neighbours = tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]


def rank(
    vectors: npt.NDArray[np.float32], rows: npt.NDArray[np.int64], candidates: npt.NDArray[np.int64], count: int
) -> Neighbours:
    """The best `count` of each row's candidates and their cosines, both (rows, count).

    `vectors` is (n, d) float32 with unit rows; `candidates` is (rows, c) int64, negative where there is none. The
    document itself is left out. Largest cosine first, of equal ones the smallest id; -1 and 0.0 where there are fewer.
    """
    ids = np.full((len(rows), count), -1, dtype=np.int64)
    cosines = np.zeros((len(rows), count), dtype=np.float32)
    for start in range(0, len(rows), ROWS_AT_ONCE):
        part = slice(start, start + ROWS_AT_ONCE)
        found, similar = _rank_part(vectors, rows[part], candidates[part])
        width = min(count, found.shape[1])
        ids[part, :width], cosines[part, :width] = found[:, :width], similar[:, :width]
    return ids, cosines


def _rank_part(
    vectors: npt.NDArray[np.float32], rows: npt.NDArray[np.int64], candidates: npt.NDArray[np.int64]
) -> Neighbours:
    absent = (candidates < 0) | (candidates == rows[:, None])
    others = vectors[np.where(absent, 0, candidates)].astype(np.float64)
    cosines = np.einsum("rcd,rd->rc", others, vectors[rows].astype(np.float64))
    cosines = np.where(absent, -np.inf, np.clip(cosines, -1, 1)).astype(np.float32)
    best = np.lexsort((candidates, -cosines), axis=1)
    ids = np.where(absent, -1, candidates)
    ids, cosines = np.take_along_axis(ids, best, axis=1), np.take_along_axis(cosines, best, axis=1)
    return ids, np.where(ids < 0, np.float32(0), cosines)


def rank_all(vectors: npt.NDArray[np.float32], rows: npt.NDArray[np.int64], count: int) -> Neighbours:
    """`rank` with every document a candidate; rows with equal vectors share the search."""
    distinct, owner = np.unique(vectors[rows], axis=0, return_inverse=True)
    ids = np.full((len(rows), count), -1, dtype=np.int64)
    cosines = np.zeros((len(rows), count), dtype=np.float32)
    for group, vector in enumerate(distinct):
        # One more than asked for, since each member of the group leaves itself out.
        candidates = _above_the_last(vectors, vector, min(count + 1, len(vectors)))
        members = np.flatnonzero(owner.reshape(-1) == group)
        ids[members], cosines[members] = rank(
            vectors, rows[members], np.broadcast_to(candidates, (len(members), len(candidates))), count
        )
    return ids, cosines


def _above_the_last(
    vectors: npt.NDArray[np.float32], vector: npt.NDArray[np.float32], count: int
) -> npt.NDArray[np.int64]:
    """The `count` documents most like `vector`, of equal ones the smallest ids."""
    rough = vectors @ vector
    threshold = np.partition(rough, len(rough) - count)[len(rough) - count] - SINGLE_PRECISION_ERROR
    close = np.flatnonzero(rough >= threshold)
    exact = np.clip(np.einsum("nd,d->n", vectors[close].astype(np.float64), vector.astype(np.float64)), -1, 1)
    return close[np.lexsort((close, -exact.astype(np.float32)))[:count]]
