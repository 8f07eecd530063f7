"""The stage `order`: its artefact, what every ordering must do, and removed duplicates."""

import dataclasses
import hashlib
import itertools
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paribus.config.groups.ordering import (
    ExactDuplicates,
    InContextOrdering,
    InContextReleasedOrdering,
    LexicalOrdering,
    NearestOrdering,
    OrderingConfig,
    StandardOrdering,
)
from paribus.errors import DataError
from paribus.ordering import bm25 as lexical_stage
from paribus.ordering import duplicates as duplicates_stage
from paribus.ordering import traverse
from paribus.ordering.arrays import NeighbourLists, write_neighbours
from paribus.ordering.orders import Order, build, order_digest, write_order
from support.corpora import write_corpus
from support.orders import ORDERINGS, all_neighbours, ordering_context, topics, write_embeddings, write_lists


def written(directory: Path, documents: list[int], groups: list[int] | None = None, kept: int | None = None) -> Path:
    directory.mkdir()
    positions = None if groups is None else np.array(groups, dtype=np.int64)
    stay = len(set(documents)) if kept is None else kept
    write_order(directory, np.array(documents, dtype=np.int64), groups=positions, kept=stay, removed=2)
    return directory


def test_an_order_is_read_as_it_was_written(tmp_path: Path) -> None:
    order = Order(written(tmp_path / "order", [3, 0, 4]))
    assert order.documents.tolist() == [3, 0, 4] and order.documents.dtype == np.int64
    assert order.groups is None
    assert (len(order), order.kept, order.corpus_documents) == (3, 3, 5)
    assert order.digest == hashlib.sha256(struct.pack("<3q", 3, 0, 4)).hexdigest()
    grouped = Order(written(tmp_path / "grouped", [3, 0, 0, 3, 4], groups=[0, 2, 4, 5]))
    assert grouped.groups is not None and grouped.groups.tolist() == [0, 2, 4, 5]
    summary = json.loads((tmp_path / "grouped" / "order.json").read_text())
    assert summary == {"documents": 5, "kept": 3, "entries": 5, "repeats": 2, "digest": grouped.digest}


def test_contradictory_and_damaged_orders_are_refused(tmp_path: Path) -> None:
    cases: list[tuple[list[int], list[int] | None, int | None, str]] = [
        ([0, 1, 1], None, None, "1 entries repeat a document, without groups.npy"),
        ([0, 1, 7], None, None, "documents 0 to 7, but the corpus has 5"),
        ([0, 1, 2], None, 4, "3 distinct documents, but order.json says that 4 are kept"),
        ([0, 1, 2], [0, 2], None, "groups.npy: must ascend from 0 to the 3 entries"),
        ([0, 1, 2], [0, 2, 2, 3], None, "groups.npy: must ascend"),
    ]
    for number, (documents, groups, kept, message) in enumerate(cases):
        with pytest.raises(DataError, match=message):
            Order(written(tmp_path / str(number), documents, groups, kept))
    path = written(tmp_path / "order", [3, 0, 4])
    np.save(path / "order.npy", np.array([0, 3, 4]))
    with pytest.raises(DataError, match=r"order\.npy: its digest is not the b57131b3244236dc…"):
        Order(path)
    np.save(path / "order.npy", np.array([3, 0]))
    with pytest.raises(DataError, match=r"order\.npy: has 2 entries, but order\.json says 3"):
        Order(path)
    (path / "order.npy").write_bytes((path / "order.npy").read_bytes()[:-4])
    with pytest.raises(DataError, match=r"order\.npy: no readable array"):
        Order(path)


LISTED = [ordering for ordering in ORDERINGS if ordering.kind in ("nn", "in_context", "lexical", "in_context_released")]
by_kind = pytest.mark.parametrize("ordering", ORDERINGS, ids=[ordering.kind for ordering in ORDERINGS])
listed_by_kind = pytest.mark.parametrize("ordering", LISTED, ids=[ordering.kind for ordering in LISTED])


def random_vectors(count: int) -> np.ndarray:
    """Vectors about three directions, a zero one and equal ones among them."""
    generator = np.random.default_rng(count)
    vectors = np.eye(6)[generator.integers(0, 3, count)] + 0.4 * generator.normal(size=(count, 6))
    vectors[count // 2 : count // 2 + 1] = 0
    vectors[count * 2 // 3 :: 5] = vectors[0]
    return vectors


class Inputs:
    """The artefacts that an order is made of, about `count` documents."""

    def __init__(self, root: Path, count: int, *, width: int = 8, vectors: np.ndarray | None = None) -> None:
        self.root, self.orders = root, 0
        vectors = random_vectors(count) if vectors is None else vectors
        ids, cosines = all_neighbours(vectors, min(width, count - 1))
        self.paths = {"corpus": write_corpus(root / "corpus", topics(count))}
        self.paths["embeddings"] = write_embeddings(root / "embeddings", vectors, rows=-(-count // 2))
        self.give_lists(np.array(ids).reshape(count, -1), np.array(cosines).reshape(count, -1))

    def give_lists(self, ids: np.ndarray, cosines: np.ndarray) -> None:
        """Lists of neighbours, for orderings by embeddings and by words alike."""
        path = self.root / "neighbours"
        path.mkdir(exist_ok=True)
        write_neighbours(path, ids, cosines)
        self.paths |= {"neighbours": path, "lexical_neighbours": path}

    def order(self, ordering: OrderingConfig, seed: int = 0) -> tuple[Order, dict[str, Any]]:
        """Run the stage and read what it wrote."""
        self.orders += 1
        context = ordering_context(self.root, f"order_{self.orders}", ordering, seed=seed, **self.paths)
        result = build(context)
        return Order(context.output), result


@by_kind
def test_an_order_depends_on_its_seed_alone(tmp_path: Path, ordering: OrderingConfig) -> None:
    inputs = Inputs(tmp_path, 40)
    first, again, other = (inputs.order(ordering, seed=seed)[0].documents.tolist() for seed in (1, 1, 2))
    assert first == again
    assert (first == other) == (ordering.kind == "sequential")


@by_kind
def test_documents_without_direction_or_neighbours_can_be_ordered(tmp_path: Path, ordering: OrderingConfig) -> None:
    inputs = Inputs(tmp_path, 12, vectors=np.zeros((12, 6)))
    order, result = inputs.order(ordering)
    assert set(order.documents.tolist()) == set(range(12))
    if ordering.kind == "in_context":
        assert (result["edges"], result["jumps"], result["mean_similarity_along_edges"]) == (0, 11, 0.0)


@listed_by_kind
def test_neighbours_of_another_corpus_are_refused(tmp_path: Path, ordering: OrderingConfig) -> None:
    inputs = Inputs(tmp_path, 9)
    inputs.give_lists(np.full((8, 2), -1), np.zeros((8, 2)))
    with pytest.raises(DataError, match=r"neighbours: has 8 documents, but .*corpus has 9"):
        inputs.order(ordering)


@by_kind
@given(count=st.integers(1, 25), seed=st.integers(0, 2**64), width=st.integers(1, 30))
def test_every_document_is_in_every_order(
    tmp_path_factory: pytest.TempPathFactory, ordering: OrderingConfig, count: int, seed: int, width: int
) -> None:
    order, result = Inputs(tmp_path_factory.mktemp("order"), count, width=width).order(ordering, seed=seed)
    documents = order.documents.tolist()
    distinct = set(documents)
    assert len(distinct) == order.kept == result["documents"] == count - result.get("dropped", 0)
    assert distinct <= set(range(count))
    assert (order.groups is not None) == (ordering.kind == "nn")
    assert len(documents) == len(distinct) or ordering.kind == "nn"
    assert result["entries"] == len(documents) and result["removed"] == count - len(distinct)
    assert result["digest"] == order.digest == order_digest(order.documents)
    json.dumps(result)


def test_nearest_neighbours_follow_each_document(tmp_path: Path) -> None:
    inputs = Inputs(tmp_path, 30, width=5)
    order, result = inputs.order(NearestOrdering(neighbours=3), seed=2)
    lists = NeighbourLists(inputs.paths["neighbours"])
    assert order.groups is not None
    groups = np.split(order.documents, order.groups[1:-1])
    for group in groups:
        assert group[1:].tolist() == [near for near in lists.ids[group[0]].tolist() if near >= 0][:3]
    standard, _ = inputs.order(StandardOrdering(), seed=2)
    assert [group[0] for group in groups] == standard.documents.tolist()
    similarities = [lists.similarities[group[0], place] for group in groups for place in range(len(group) - 1)]
    assert result["mean_similarity_of_neighbours"] == pytest.approx(np.mean(similarities), abs=1e-6)
    assert (result["groups"], result["without_neighbours"]) == (30, 1)


@pytest.mark.parametrize("ordering", [InContextOrdering(neighbours=8), LexicalOrdering(neighbours=8)])
def test_a_path_through_whole_lists_is_that_of_traverse(tmp_path: Path, ordering: OrderingConfig) -> None:
    inputs = Inputs(tmp_path, 50)
    order, result = inputs.order(ordering, seed=4)
    lists = NeighbourLists(inputs.paths["neighbours"])
    assert np.array_equal(order.documents, traverse(lists.ids, lists.similarities, seed=4))
    edges = {frozenset((i, int(j))) for i, row in enumerate(lists.ids) for j in row if j >= 0}
    along = sum(frozenset(pair) in edges for pair in itertools.pairwise(order.documents.tolist()))
    assert result["edges"] == len(edges) and result["jumps"] == 49 - along
    assert result["mean_similarity_of_adjacent"] == pytest.approx(result["path_weight"] / 49)
    assert result["mean_similarity_along_edges"] == pytest.approx(result["path_weight"] / along)


def test_the_released_order_drops_documents_that_start_like_the_one_before(tmp_path: Path) -> None:
    texts = [hashlib.sha256(bytes([number])).hexdigest() for number in range(20)]
    texts[7], texts[13] = texts[3] + " but longer", texts[3] + " and longer"
    inputs = Inputs(tmp_path, 20)
    inputs.paths["corpus"] = write_corpus(tmp_path / "other", texts)
    near = np.full((20, 2), -1)
    near[3], near[7], near[13] = (7, 13), (13, 3), (3, 7)
    inputs.give_lists(near, np.ones((20, 2)))
    order, result = inputs.order(InContextReleasedOrdering(compared_characters=30, chain=3, jaccard=0.9))
    rows = pq.read_table(order.path / "dropped.parquet").to_pylist()
    assert result["dropped"] == result["removed"] == 2 == len(rows)
    assert {row["document"] for row in rows} | {row["before"] for row in rows} == {3, 7, 13}
    assert all(row["similarity"] == 1.0 and row["id"] == str(row["document"]) for row in rows)
    assert set(range(20)) - set(order.documents.tolist()) == {row["document"] for row in rows}
    assert order.corpus_documents == 20 and order.kept == 18


DOCUMENTS, COPIES = 40, {7: 3, 12: 4, 30: 3, 39: 0}
KEPT = [document for document in range(DOCUMENTS) if document not in COPIES]
# The texts are alike up to 0.95, so that the released ordering, which drops such ones too, drops none of them.
KEEPING: list[OrderingConfig] = [
    dataclasses.replace(ordering, jaccard=0.99) if isinstance(ordering, InContextReleasedOrdering) else ordering
    for ordering in ORDERINGS
]


@pytest.fixture(scope="module")
def with_copies(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """All inputs of an order, about documents of which four are copies."""
    root = tmp_path_factory.mktemp("inputs")
    texts = [f"{number} {text}" for number, text in enumerate(topics(DOCUMENTS))]
    vectors = np.random.default_rng(1).normal(size=(DOCUMENTS, 6))
    for copy, first in COPIES.items():
        texts[copy], vectors[copy] = texts[first], vectors[first]
    corpus = write_corpus(root / "corpus", texts)
    removal = {"duplicates": ExactDuplicates()}
    duplicates_stage.build(ordering_context(root, "duplicates", groups=removal, corpus=corpus))
    lexical_stage.build(ordering_context(root, "lexical_neighbours", LexicalOrdering(neighbours=4), corpus=corpus))
    write_lists(root / "neighbours", vectors, 8)
    write_embeddings(root / "embeddings", vectors)
    names = ("corpus", "duplicates", "lexical_neighbours", "neighbours", "embeddings")
    return {name: root / name for name in names}


@pytest.mark.parametrize("ordering", KEEPING, ids=[ordering.kind for ordering in KEEPING])
def test_duplicates_are_in_no_order(tmp_path: Path, with_copies: dict[str, Path], ordering: OrderingConfig) -> None:
    context = ordering_context(tmp_path, "order", ordering, **with_copies)
    result, order = build(context), Order(context.output)
    assert sorted(set(order.documents.tolist())) == KEPT
    assert (result["documents"], result["removed"], order.corpus_documents) == (len(KEPT), len(COPIES), DOCUMENTS)
    assert len(order) == len(KEPT) or ordering.kind == "nn"
    if order.groups is not None:
        lists = NeighbourLists(with_copies["neighbours"])
        for group in np.split(order.documents, order.groups[1:-1]):
            assert group[1:].tolist() == [near for near in lists.ids[group[0]].tolist() if near in KEPT][:3]
