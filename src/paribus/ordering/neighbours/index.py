"""The nearest vectors of one shard: exactly, or by faiss' inverted lists and an exact ranking of what they find."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, cast

import faiss
import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from paribus.ordering.neighbours.ranking import SINGLE_PRECISION_ERROR, Ids, Neighbours, Vectors, rank, rank_all
from paribus.ordering.neighbours.rule import SearchPlan
from paribus.store import files

SPARE_CANDIDATES = 16
_ITERATIONS = 10
_SEED = 1234


class ExactShard:
    """Every vector of a shard is compared. Ties are those of double precision."""

    def __init__(self, base: Vectors) -> None:
        self.base = base

    def nearest(self, queries: Vectors, itself: Ids, count: int) -> Neighbours:
        """The nearest `count` rows of the shard and their cosines, as `rank` gives them."""
        wanted = min(count + 1 + SPARE_CANDIDATES, len(self.base))
        rough, candidates = faiss.knn(queries, self.base, wanted, metric=faiss.METRIC_INNER_PRODUCT)
        ids, cosines = rank(queries, self.base, candidates, itself, count)
        if wanted < len(self.base):
            # Where the last neighbour is as near as the last candidate, others as near may not have been retrieved.
            unsure = np.flatnonzero(cosines[:, -1] <= rough[:, -1] + SINGLE_PRECISION_ERROR)
            if len(unsure):
                ids[unsure], cosines[unsure] = rank_all(queries[unsure], self.base, itself[unsure], count)
        return ids, cosines


class InvertedShard:
    """The lists of a shard that are nearest to a query are searched, and the candidates ranked exactly."""

    def __init__(self, base: Vectors, trained: Any, probes: int, factor: int) -> None:
        """Put the rows of `base` into a copy of the `trained` index; `factor` candidates a neighbour are ranked."""
        self.base, self._factor = base, factor
        self._index = cast(Any, faiss.clone_index(trained))
        self._index.add(base)
        self._index.nprobe = probes

    def probe(self, lists: int) -> None:
        """Search so many lists a query from now on."""
        self._index.nprobe = lists

    def nearest(self, queries: Vectors, itself: Ids, count: int) -> Neighbours:
        """The nearest `count` rows of the shard among the candidates and their cosines, as `rank` gives them."""
        wanted = min(max(self._factor * count, count + 1 + SPARE_CANDIDATES), len(self.base))
        _, candidates = self._index.search(queries, wanted)
        return rank(queries, self.base, candidates, itself, count)


class Shard(Protocol):
    """What can be searched."""

    def nearest(self, queries: Vectors, itself: Ids, count: int) -> Neighbours:
        """The nearest `count` rows and their cosines, as `rank` gives them."""


def nearest_documents(shard: Shard, rows: Ids, queries: Vectors, documents: Ids, count: int) -> Neighbours:
    """Of each document the nearest among the documents `rows` of a shard, and their cosines, both (q, count)."""
    ids = np.full((len(queries), count), -1, dtype=np.int64)
    cosines = np.zeros((len(queries), count), dtype=np.float32)
    asked = np.flatnonzero(queries.any(axis=1))
    if len(asked) and len(rows):
        places = np.searchsorted(rows, documents[asked])
        own = np.where(rows[np.minimum(places, len(rows) - 1)] == documents[asked], places, -1)
        found, cosines[asked] = shard.nearest(np.ascontiguousarray(queries[asked]), own, count)
        ids[asked] = np.where(found < 0, -1, rows[found])
    return ids, cosines


def train_index(vectors: Vectors, plan: SearchPlan) -> Any:
    """An empty index with centroids, and codes if it quantizes, learned from `vectors` (m, d).

    One thread, since the last bits of k-means, and with them which list a document is in, depend on their number.
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
    """The index that `save_index` wrote."""
    return faiss.read_index(str(path))


def let_faiss_use_one_thread() -> None:
    """Have what faiss does for the calling thread take no other."""
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
