"""Nearest neighbours of every document by inner product of unit vectors, that is by cosine (faiss)."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import isqrt
from typing import Any, Literal

import faiss
import numpy as np
import numpy.typing as npt

from paribus.ordering.ranking import SINGLE_PRECISION_ERROR, Neighbours, rank, rank_all

QUERIES_AT_ONCE = 2048
SPARE_CANDIDATES = 15
TRAINING_VECTORS_A_LIST = 39
"""Fewer make faiss warn that its k-means is under-trained."""


def find_neighbours(
    embeddings: npt.NDArray[np.float32],
    count: int,
    *,
    index: Literal["flat", "ivf"] = "flat",
    probes: int = 64,
    progress: Callable[[int], None] = lambda done: None,
) -> Neighbours:
    """The `count` nearest neighbours of every document and their cosines: (n, count) int64 and (n, count) float32.

    `embeddings` is (n, d) float32 with rows of length 1; a row of zeros has no neighbours and is nobody's. The
    document itself is left out. Largest cosine first, of equal ones the smallest id; -1 and 0.0 where there are fewer.
    `flat` is exact and does not depend on the number of threads. `ivf` searches the `probes` nearest of about 4 sqrt(n)
    lists of a faiss inverted file and ranks what it finds exactly. `progress` is told how many documents are done.
    """
    real = np.flatnonzero(embeddings.any(axis=1))
    vectors = np.ascontiguousarray(embeddings[real], dtype=np.float32)
    ids = np.full((len(embeddings), count), -1, dtype=np.int64)
    cosines = np.zeros((len(embeddings), count), dtype=np.float32)
    searcher = _flat(vectors) if index == "flat" else _inverted_file(vectors, probes)
    for start in range(0, len(real), QUERIES_AT_ONCE):
        rows = np.arange(start, min(start + QUERIES_AT_ONCE, len(real)))
        found, similar = _search(vectors, rows, searcher, count, exact=index == "flat")
        ids[real[rows]] = np.where(found < 0, -1, real[found])
        cosines[real[rows]] = similar
        progress(int(rows[-1]) + 1)
    return ids, cosines


def _search(
    vectors: npt.NDArray[np.float32], rows: npt.NDArray[np.int64], searcher: Any, count: int, *, exact: bool
) -> Neighbours:
    wanted = min(count + 1 + SPARE_CANDIDATES, len(vectors))
    rough, candidates = searcher.search(vectors[rows], wanted)
    ids, cosines = rank(vectors, rows, candidates, count)
    if not exact or wanted == len(vectors):
        return ids, cosines
    # Where the last neighbour is as near as the last candidate, others as near may be among those not retrieved.
    unsure = np.flatnonzero(cosines[:, -1] <= rough[:, -1] + SINGLE_PRECISION_ERROR)
    if len(unsure):
        ids[unsure], cosines[unsure] = rank_all(vectors, rows[unsure], count)
    return ids, cosines


def _flat(vectors: npt.NDArray[np.float32]) -> Any:
    searcher = faiss.IndexFlatIP(vectors.shape[1])
    searcher.add(vectors)
    return searcher


def _inverted_file(vectors: npt.NDArray[np.float32], probes: int) -> Any:
    lists = max(1, min(4 * isqrt(len(vectors)), len(vectors) // TRAINING_VECTORS_A_LIST))
    dimensions = vectors.shape[1]
    searcher = faiss.IndexIVFFlat(faiss.IndexFlatIP(dimensions), dimensions, lists, faiss.METRIC_INNER_PRODUCT)
    searcher.nprobe = min(probes, lists)
    if len(vectors):
        # The last bits of k-means depend on the number of threads, and with them which list a document is in.
        with _one_thread():
            searcher.train(vectors)
            searcher.add(vectors)
    return searcher


@contextmanager
def _one_thread() -> Iterator[None]:
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(threads)
