"""Pinned digests of the stages `order` and `lexical_neighbours` on a tiny input.

A digest that changes means that the stage's `code_version` must change with it.
"""

from pathlib import Path

import numpy as np
import pytest

from paribus.config.groups.ordering import (
    ClusterOrdering,
    InContextOrdering,
    InContextReleasedOrdering,
    LexicalOrdering,
    NearestOrdering,
    OrderingConfig,
    SequentialOrdering,
    StandardOrdering,
)
from paribus.ordering import bm25 as lexical_stage
from paribus.ordering import orders as order_stage
from support.corpora import write_corpus
from support.orders import digest, formula_vectors, stage_context, topics, write_embeddings, write_lists

DOCUMENTS = 200
ORDERS: list[tuple[OrderingConfig, str]] = [
    (StandardOrdering(), "702dbe1b8a3edca9"),
    (SequentialOrdering(), "de663cfb3b82787e"),
    (NearestOrdering(neighbours=3), "9bc8b388226009f2"),
    (ClusterOrdering(), "71920603d5b74dc8"),
    (InContextOrdering(neighbours=5), "fe659ee7c8791ef6"),
    (LexicalOrdering(neighbours=5), "fe659ee7c8791ef6"),
    (InContextReleasedOrdering(neighbours=4, chain=6), "1e4bef575a0cc8bb"),
]
LEXICAL_NEIGHBOURS = "747d76df46b46067"
LEXICAL_SIMILARITIES = "98447b6abb0accad"


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Vectors from a formula and their exact neighbours, so that no pin depends on an embedder or an index."""
    root = tmp_path_factory.mktemp("inputs")
    vectors = formula_vectors(DOCUMENTS)
    neighbours = write_lists(root / "neighbours", vectors, 10)
    return {
        "corpus": write_corpus(root / "corpus", topics(DOCUMENTS)),
        "embeddings": write_embeddings(root / "embeddings", vectors),
        "neighbours": neighbours,
        "lexical_neighbours": neighbours,
    }


@pytest.mark.parametrize(("ordering", "pinned"), ORDERS, ids=[ordering.kind for ordering, _ in ORDERS])
def test_an_order_keeps_its_digest(
    tmp_path: Path, inputs: dict[str, Path], ordering: OrderingConfig, pinned: str
) -> None:
    result = order_stage.build(stage_context(tmp_path, "order", ordering, seed=7, **inputs))
    assert str(result["digest"])[:16] == pinned


def test_lexical_neighbours_keep_their_digests(tmp_path: Path, inputs: dict[str, Path]) -> None:
    context = stage_context(tmp_path, "lexical_neighbours", LexicalOrdering(neighbours=5), corpus=inputs["corpus"])
    lexical_stage.build(context)
    assert digest(np.load(context.output / "neighbours.npy")) == LEXICAL_NEIGHBOURS
    assert digest(np.load(context.output / "similarities.npy").round(4)) == LEXICAL_SIMILARITIES
