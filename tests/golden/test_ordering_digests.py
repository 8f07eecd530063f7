"""Pinned outputs of the ordering stages on a tiny input.

A digest that changes means that the stage's `code_version` must change with it.
"""

import hashlib
from pathlib import Path

import numpy as np

from ordering_support import IN_CONTEXT, stage_context, topics, write_corpus
from paribus.config.groups.ordering import StandardOrdering
from paribus.ordering.contexts import PackedStream
from paribus.ordering.shuffle import permute
from paribus.ordering.stages import build_embeddings, build_neighbours, build_order

NEIGHBOURS = "27c0abb7695276e8"
SIMILARITIES = "76d6d40522f4f589"
IN_CONTEXT_ORDER = "3ae0a5d788c9a34f"
STANDARD_ORDER = "7e63c32f9cea31f6"


def digest(array: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]


def test_embeddings_keep_their_cosines(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "corpus", topics(60))
    build_embeddings(stage_context(tmp_path, "embeddings", IN_CONTEXT, corpus=corpus))
    embeddings = np.load(tmp_path / "embeddings" / "embeddings.npy")
    cosines = embeddings @ embeddings.T
    assert [round(float(cosines[0, j]), 3) for j in (1, 5, 15, 20)] == [0.089, 0.596, 0.652, 0.596]
    assert round(float(np.abs(cosines).mean()), 3) == 0.2


def fixed_embeddings(root: Path) -> Path:
    """Unit vectors from a formula, so that the digests below do not depend on an embedder."""
    grid = (np.arange(1600) ** 2 * 7919 % 10007 / 5003 - 1).reshape(200, 8)
    grid[150:] = grid[:50]
    (root / "embeddings").mkdir()
    vectors = (grid / np.linalg.norm(grid, axis=1, keepdims=True)).astype(np.float32)
    np.save(root / "embeddings" / "embeddings.npy", vectors)
    return root / "embeddings"


def test_neighbours_and_the_path_through_them_keep_their_digests(tmp_path: Path) -> None:
    embeddings = fixed_embeddings(tmp_path)
    build_neighbours(stage_context(tmp_path, "neighbours", IN_CONTEXT, embeddings=embeddings))
    assert digest(np.load(tmp_path / "neighbours" / "neighbours.npy")) == NEIGHBOURS
    assert digest(np.load(tmp_path / "neighbours" / "similarities.npy").round(5)) == SIMILARITIES
    context = stage_context(tmp_path, "order", IN_CONTEXT, seed=7, neighbours=tmp_path / "neighbours")
    assert str(build_order(context)["digest"])[:16] == IN_CONTEXT_ORDER
    assert digest(np.load(tmp_path / "order" / "order.npy")) == IN_CONTEXT_ORDER


def test_the_standard_order_keeps_its_digest(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "corpus", topics(60))
    result = build_order(stage_context(tmp_path, "order", StandardOrdering(), seed=7, corpus=corpus))
    assert str(result["digest"])[:16] == STANDARD_ORDER


def test_the_order_of_contexts_and_their_tokens_keep_their_values() -> None:
    assert permute(np.arange(10), 1000, seed=7, epoch=3).tolist() == [507, 811, 354, 584, 310, 994, 176, 768, 689, 346]
    stream = PackedStream(np.arange(20), np.array([0, 7, 7, 20]), np.array([2, 1, 0]), 50, 6)
    assert stream.contexts(np.arange(stream.count)).tolist() == [
        [7, 8, 9, 10, 11, 12, 13],
        [13, 14, 15, 16, 17, 18, 19],
        [19, 50, 50, 0, 1, 2, 3],
    ]
