"""The nearest vectors of one shard: exactly, or by faiss' inverted lists and an exact ranking of candidates."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, cast

import faiss
import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from paribus.native.loader import address, kernel
from paribus.ordering.search_plan import SearchPlan
from paribus.store import files

SPARE_CANDIDATES = 16
_ITERATIONS = 10
_SEED = 1234


Vectors = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int64]
Neighbours = tuple[Ids, Vectors]
SINGLE_PRECISION_ERROR = np.float32(1e-5)
"""Bound of the error of an inner product of unit vectors in single precision."""


class ExactShard:
    """Compares every vector of a shard. Ties are those of double precision."""

    def __init__(self, base: Vectors) -> None:
        self.base = base

    def nearest(self, queries: Vectors, itself: Ids, count: int) -> Neighbours:
        """The nearest `count` rows of the shard and their cosines, as `rank` gives them."""
        number = min(count + 1 + SPARE_CANDIDATES, len(self.base))
        rough, candidates = faiss.knn(queries, self.base, number, metric=faiss.METRIC_INNER_PRODUCT)
        ids, cosines = rank(queries, self.base, candidates, itself, count)
        if number < len(self.base):
            # Where the last neighbour is as near as the last candidate, more that are as near may be missing.
            unsure = np.flatnonzero(cosines[:, -1] <= rough[:, -1] + SINGLE_PRECISION_ERROR)
            if len(unsure):
                ids[unsure], cosines[unsure] = rank_all(queries[unsure], self.base, itself[unsure], count)
        return ids, cosines


class InvertedShard:
    """Searches the lists of a shard that are nearest to a query, and ranks the candidates exactly."""

    def __init__(self, base: Vectors, trained: Any, probes: int, factor: int) -> None:
        """Put the rows of `base` into a copy of the `trained` index; `factor` candidates a neighbour are ranked."""
        self.base, self._factor = base, factor
        self._index = cast(Any, faiss.clone_index(trained))
        self._index.add(base)
        self._index.nprobe = probes

    def probe(self, lists: int) -> None:
        self._index.nprobe = lists

    def nearest(self, queries: Vectors, itself: Ids, count: int) -> Neighbours:
        """The nearest `count` rows of the shard among the candidates and their cosines, as `rank` gives them."""
        number = min(max(self._factor * count, count + 1 + SPARE_CANDIDATES), len(self.base))
        _, candidates = self._index.search(queries, number)
        return rank(queries, self.base, candidates, itself, count)


class Shard(Protocol):
    """Vectors that can be searched."""

    def nearest(self, queries: Vectors, itself: Ids, count: int) -> Neighbours:
        """The nearest `count` rows and their cosines, as `rank` gives them."""


def nearest_documents(shard: Shard, rows: Ids, queries: Vectors, documents: Ids, count: int) -> Neighbours:
    """Nearest neighbours of each document among the documents `rows` of a shard, and their cosines, both (q, count)."""
    ids = np.full((len(queries), count), -1, dtype=np.int64)
    cosines = np.zeros((len(queries), count), dtype=np.float32)
    queried = np.flatnonzero(queries.any(axis=1))
    if len(queried) and len(rows):
        places = np.searchsorted(rows, documents[queried])
        itself = np.where(rows[np.minimum(places, len(rows) - 1)] == documents[queried], places, -1)
        nearest, cosines[queried] = shard.nearest(np.ascontiguousarray(queries[queried]), itself, count)
        ids[queried] = np.where(nearest < 0, -1, rows[nearest])
    return ids, cosines


def train_index(vectors: Vectors, plan: SearchPlan) -> Any:
    """An empty index with centroids, and codes if it quantizes, learned from `vectors` (m, d).

    One thread, since the last bits of k-means, and with them the list that a document is in, depend on their number.
    """
    dimensions = vectors.shape[1]
    coarse = faiss.IndexFlatIP(dimensions)
    with one_thread():
        clustering = faiss.Clustering(dimensions, plan.lists)
        clustering.niter, clustering.seed, clustering.spherical = _ITERATIONS, _SEED, True
        clustering.min_points_per_centroid = 1
        clustering.max_points_per_centroid = max(1, len(vectors) // plan.lists + 1)
        clustering.train(vectors, coarse)
        index = _inverted(coarse, dimensions, plan)
        index.train(vectors)
    return index


def _inverted(coarse: Any, dimensions: int, plan: SearchPlan) -> Any:
    metric = faiss.METRIC_INNER_PRODUCT
    if plan.index == "ivf_pq":
        index: Any = faiss.IndexIVFPQ(coarse, dimensions, plan.lists, plan.code_size, 8, metric)
    else:
        half = faiss.ScalarQuantizer.QT_fp16
        index = faiss.IndexIVFScalarQuantizer(coarse, dimensions, plan.lists, half, metric, False)
    # The index would otherwise free centroids that Python also owns.
    coarse.this.disown()
    index.own_fields = True
    return index


def save_index(index: Any, path: Path) -> None:
    """Replace `path` by an index in one step."""
    with files.replacing(path) as aside:
        faiss.write_index(index, str(aside))


def load_index(path: Path) -> Any:
    return faiss.read_index(str(path))


def let_faiss_use_one_thread() -> None:
    """Let faiss use no other thread when the calling thread uses it."""
    faiss.omp_set_num_threads(1)


@contextmanager
def one_thread() -> Iterator[None]:
    """Let faiss and BLAS use one thread; shards are searched in blocks that threads of ours take."""
    threads = faiss.omp_get_max_threads()
    with threadpool_limits(1):
        let_faiss_use_one_thread()
        try:
            yield
        finally:
            faiss.omp_set_num_threads(threads)


# faiss finds candidates in single precision or by quantized vectors. Here the cosines of the candidates are computed
# again, in double precision and in a fixed order, so that lists of neighbours depend on neither.
def rank(queries: Vectors, base: Vectors, candidates: Ids, itself: Ids, count: int) -> Neighbours:
    """The best `count` of each query's candidates and their cosines, both (queries, count).

    `queries` (q, d) and `base` (n, d) are float32 with unit rows; `candidates` (q, c) are rows of `base`, negative
    where there is none; `itself` (q,) is the row that is the query itself, which is left out, or -1. Largest cosine
    first, of equal ones the smallest row; -1 and 0.0 where there are fewer.
    """
    places = np.where(candidates == itself[:, None], -1, candidates)
    cosines = np.clip(scores(queries, base, places), -1, 1).astype(np.float32)
    cosines[places < 0] = -np.inf
    best = np.lexsort((places, -cosines), axis=1)[:, :count]
    ids, cosines = np.take_along_axis(places, best, axis=1), np.take_along_axis(cosines, best, axis=1)
    cosines[ids < 0] = 0
    missing = ((0, 0), (0, count - ids.shape[1]))
    return np.pad(ids, missing, constant_values=-1), np.pad(cosines, missing)


def scores(queries: Vectors, base: Vectors, candidates: Ids) -> npt.NDArray[np.float64]:
    """Inner product of each query with each of its candidates, (q, c) float64; 0 where there is none."""
    products, sums = np.zeros(candidates.shape), np.zeros(16)
    listed = np.ascontiguousarray(candidates)
    arrays = [np.ascontiguousarray(array) for array in (queries, base)]
    form = (*candidates.shape, queries.shape[1])
    kernel("score_candidates")(*map(address, arrays), address(listed), *form, address(sums), address(products))
    return products


def rank_all(queries: Vectors, base: Vectors, itself: Ids, count: int) -> Neighbours:
    """`rank` with every row of `base` a candidate; equal queries share the search."""
    distinct, owner = np.unique(queries, axis=0, return_inverse=True)
    ids = np.full((len(queries), count), -1, dtype=np.int64)
    cosines = np.zeros((len(queries), count), dtype=np.float32)
    for group, vector in enumerate(distinct):
        # One more than asked for, since each member of the group leaves itself out.
        candidates = _most_similar(base, vector, min(count + 1, len(base)))
        members = np.flatnonzero(owner.reshape(-1) == group)
        shared = np.broadcast_to(candidates, (len(members), len(candidates)))
        ids[members], cosines[members] = rank(queries[members], base, shared, itself[members], count)
    return ids, cosines


def _most_similar(base: Vectors, vector: Vectors, count: int) -> Ids:
    """The `count` rows with the largest cosine to `vector`, of equal ones the first."""
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
