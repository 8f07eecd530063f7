"""The clustering ablation of In-Context Pretraining (arXiv 2310.10638, section 4.4, after Abbas et al., 2303.09540).

Spherical k-means (Dhillon and Modha, 2001): vectors are of unit length, centroids are scaled to it, and a document
belongs to the centroid of largest cosine. Documents of a cluster are read together. A document without a direction, a
row of zeros, belongs to no centroid: these are read last.

faiss learns the centroids with one thread, and documents are assigned in blocks whose sizes depend only on the shape of
the centroids, one thread per block, so the result does not depend on the number of threads.
"""

import math
from dataclasses import dataclass
from functools import partial

import faiss
import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from paribus.config.groups.ordering import ClusterOrdering
from paribus.engine import Engine
from paribus.ordering.arrays import CENTROIDS, CLUSTERS, SHUFFLE, mean_of, permutation, seed_sequence, spread
from paribus.ordering.embeddings import Embeddings

MOST_CLUSTERS = 11_000
"""The paper's number of clusters, for 235M documents."""
VALUES_A_BLOCK = 2**24
"""Scores, or values of vectors, that a thread has in memory at once."""
NOWHERE = -1

Indices = npt.NDArray[np.int64]
Vectors = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Clustered:
    """Documents cluster by cluster."""

    documents: Indices
    """(m,) document indices, each once."""
    sizes: Indices
    """(c,) documents of each cluster, in the order they are read; those without a direction are not among them."""
    without_direction: int
    mean_similarity: float
    """Mean cosine of a document and the centroid of its cluster; 0 where no document has a direction."""


def cluster_count(documents: int) -> int:
    """About the square root of the number of documents, at most the paper's 11,000."""
    return min(MOST_CLUSTERS, round(math.sqrt(documents)))


def by_cluster(
    embeddings: Embeddings, kept: npt.NDArray[np.bool_], ordering: ClusterOrdering, *, seed: int, engine: Engine
) -> Clustered:
    """The kept documents, (n,) bool, cluster by cluster: clusters in random order, documents inside in random order.

    There are `ordering.clusters`, by default `cluster_count`; fewer where some stay empty, as with equal documents.
    """
    with threadpool_limits(1):
        centroids = _centroids(embeddings, kept, ordering, seed)
        label, similarity = _assign(embeddings, centroids, engine)
    documents = np.flatnonzero(kept).astype(np.int64)
    label, similarity = label[documents], similarity[documents]
    shuffle = permutation(len(documents), SHUFFLE, seed)
    place = np.append(permutation(len(centroids), CLUSTERS, seed), len(centroids))
    by_place = shuffle[np.argsort(place[label[shuffle]], kind="stable")]
    sizes = np.bincount(place[label], minlength=len(centroids) + 1)
    return Clustered(
        documents[by_place], sizes[:-1][sizes[:-1] > 0], int(sizes[-1]), mean_of(similarity[label != NOWHERE])
    )


def _centroids(embeddings: Embeddings, kept: npt.NDArray[np.bool_], ordering: ClusterOrdering, seed: int) -> Vectors:
    """Unit rows, one per cluster, learned from documents evenly spread over the kept ones."""
    documents = np.flatnonzero(kept)
    count = min(ordering.clusters or cluster_count(len(documents)), len(documents))
    vectors = embeddings.take(documents[spread(len(documents), max(ordering.fit_documents, count))])
    vectors = vectors[vectors.any(axis=1)]
    if not count or not len(vectors):
        return np.zeros((0, embeddings.dimensions), dtype=np.float32)
    kmeans = faiss.Kmeans(
        vectors.shape[1],
        min(count, len(vectors)),
        niter=ordering.iterations,
        spherical=True,
        seed=int(seed_sequence(CENTROIDS, seed).generate_state(1)[0] >> 1),
        # faiss uses all vectors, and does not warn about few of them.
        max_points_per_centroid=len(vectors),
        min_points_per_centroid=1,
    )
    kmeans.train(np.ascontiguousarray(vectors))
    return np.asarray(kmeans.centroids, dtype=np.float32)


def _assign(embeddings: Embeddings, centroids: Vectors, engine: Engine) -> tuple[Indices, npt.NDArray[np.float32]]:
    """Cluster of every document, -1 for one without a direction, and its cosine with that centroid, both (n,)."""
    if not len(centroids):
        return np.full(len(embeddings), NOWHERE), np.zeros(len(embeddings), dtype=np.float32)
    documents, rows = len(embeddings), max(1, VALUES_A_BLOCK // max(centroids.shape))
    blocks = [(start, min(start + rows, documents)) for start in range(0, documents, rows)]
    parts = list(engine.map(partial(_nearest, embeddings, centroids), blocks, releases_gil=True))
    return np.concatenate([label for label, _ in parts]), np.concatenate([similarity for _, similarity in parts])


def _nearest(
    embeddings: Embeddings, centroids: Vectors, block: tuple[int, int]
) -> tuple[Indices, npt.NDArray[np.float32]]:
    vectors = embeddings.rows(*block)
    scores = vectors @ centroids.T
    label = scores.argmax(axis=1)
    similarity = np.take_along_axis(scores, label[:, None], axis=1)[:, 0]
    return np.where(vectors.any(axis=1), label, NOWHERE), similarity
