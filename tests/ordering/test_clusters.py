"""Spherical k-means over embeddings: what stands together, whatever the number of threads."""

from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from paribus.config.groups.ordering import ClusterOrdering
from paribus.engine.local import LocalEngine
from paribus.ordering.clusters import Clustered, by_cluster
from paribus.ordering.embeddings import Embeddings
from support.orders import write_embeddings


def blobs(count: int, dimensions: int, centres: int, noise: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    """Unit vectors about orthogonal centres, and which centre each is about."""
    generator = np.random.default_rng(0)
    label = generator.integers(0, centres, count)
    return np.eye(dimensions)[label] + noise * generator.normal(size=(count, dimensions)) / np.sqrt(dimensions), label


def clustered(directory: Path, vectors: np.ndarray, ordering: ClusterOrdering, workers: int = 1) -> Clustered:
    embeddings = Embeddings(write_embeddings(directory, vectors, rows=-(-len(vectors) // 3)))
    kept = np.ones(len(vectors), dtype=bool)
    return by_cluster(embeddings, kept, ordering, seed=0, engine=LocalEngine(workers))


def test_every_document_belongs_to_the_centroid_it_is_nearest_to(tmp_path: Path) -> None:
    vectors, _ = blobs(300, 8, 5, noise=1.5)
    clusters = clustered(tmp_path, vectors, ClusterOrdering(clusters=5, iterations=100))
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    parts = np.split(clusters.documents, np.cumsum(clusters.sizes)[:-1])
    means = np.array([unit[part].mean(axis=0) for part in parts])
    cosines = unit @ (means / np.linalg.norm(means, axis=1, keepdims=True)).T
    own = np.concatenate([np.full(len(part), place) for place, part in enumerate(parts)])
    assert (cosines[clusters.documents].argmax(axis=1) == own).mean() > 0.99
    assert clusters.mean_similarity == pytest.approx(cosines.max(axis=1).mean(), abs=2e-3)


def test_the_order_does_not_depend_on_threads_or_workers(tmp_path: Path) -> None:
    vectors, _ = blobs(3000, 32, 32, noise=2)
    ordering = ClusterOrdering(iterations=5)
    with threadpool_limits(1):
        one = clustered(tmp_path / "one", vectors, ordering)
    with threadpool_limits(4):
        four = clustered(tmp_path / "four", vectors, ordering, workers=3)
    assert np.array_equal(one.documents, four.documents)
