"""Orders of a corpus of which copies were removed: what is not kept is in no order and in nobody's list."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from paribus.config.groups.ordering import (
    ExactDuplicates,
    InContextReleasedOrdering,
    LexicalOrdering,
    NearestOrdering,
    OrderingConfig,
    StandardOrdering,
)
from paribus.errors import DataError
from paribus.ordering import bm25 as lexical_stage
from paribus.ordering import duplicates as duplicates_stage
from paribus.ordering import orders as order_stage
from paribus.ordering.arrays import NeighbourLists
from paribus.ordering.orders import Order
from support.corpora import write_corpus
from support.orders import ORDERINGS, stage_context, topics, write_embeddings, write_lists

DOCUMENTS, COPIES = 40, {7: 3, 12: 4, 30: 3, 39: 0}
KEPT = [document for document in range(DOCUMENTS) if document not in COPIES]
# The texts are alike up to 0.95, so that the released ordering, which drops such ones too, drops none of them.
KEEPING: list[OrderingConfig] = [
    dataclasses.replace(ordering, jaccard=0.99) if isinstance(ordering, InContextReleasedOrdering) else ordering
    for ordering in ORDERINGS
]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """All inputs of an order, about documents of which four are copies."""
    root = tmp_path_factory.mktemp("inputs")
    texts = [f"{number} {text}" for number, text in enumerate(topics(DOCUMENTS))]
    vectors = np.random.default_rng(1).normal(size=(DOCUMENTS, 6))
    for copy, first in COPIES.items():
        texts[copy], vectors[copy] = texts[first], vectors[first]
    corpus = write_corpus(root / "corpus", texts)
    removal = {"duplicates": ExactDuplicates()}
    duplicates_stage.build(stage_context(root, "duplicates", groups=removal, corpus=corpus))
    lexical_stage.build(stage_context(root, "lexical_neighbours", LexicalOrdering(neighbours=4), corpus=corpus))
    write_lists(root / "neighbours", vectors, 8)
    write_embeddings(root / "embeddings", vectors)
    names = ("corpus", "duplicates", "lexical_neighbours", "neighbours", "embeddings")
    return {name: root / name for name in names}


@pytest.mark.parametrize("ordering", KEEPING, ids=[ordering.kind for ordering in KEEPING])
def test_every_kept_document_is_read_and_no_other(
    tmp_path: Path, inputs: dict[str, Path], ordering: OrderingConfig
) -> None:
    context = stage_context(tmp_path, "order", ordering, **inputs)
    result, order = order_stage.build(context), Order(context.output)
    assert sorted(set(order.documents.tolist())) == KEPT
    assert (result["documents"], result["removed"], order.corpus_documents) == (len(KEPT), len(COPIES), DOCUMENTS)
    assert len(order) == len(KEPT) or ordering.kind == "nn"


def test_the_first_neighbours_that_are_kept_follow_a_document(tmp_path: Path, inputs: dict[str, Path]) -> None:
    context = stage_context(tmp_path, "order", NearestOrdering(neighbours=3), **inputs)
    order_stage.build(context)
    order, lists = Order(context.output), NeighbourLists(inputs["neighbours"])
    assert order.groups is not None
    for group in np.split(order.documents, order.groups[1:-1]):
        assert group[1:].tolist() == [near for near in lists.ids[group[0]].tolist() if near in KEPT][:3]


def test_duplicates_of_another_corpus_are_refused(tmp_path: Path, inputs: dict[str, Path]) -> None:
    corpus = write_corpus(tmp_path / "corpus", topics(DOCUMENTS + 2))
    context = stage_context(tmp_path, "order", StandardOrdering(), **(inputs | {"corpus": corpus}))
    with pytest.raises(DataError, match=r"duplicates: has 40 documents, but .*corpus has 42"):
        order_stage.build(context)
