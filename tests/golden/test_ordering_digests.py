"""Pinned outputs of the stages of ordering on tiny inputs; a value that changes needs a new `code_version`.

What is computed in floating point is pinned to rounded values.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from paribus.config.groups.model import LlamaModel
from paribus.config.groups.ordering import (
    BestFitPacking,
    ClusterOrdering,
    DuplicatesConfig,
    ExactDuplicates,
    InContextOrdering,
    InContextReleasedOrdering,
    LexicalOrdering,
    MinHashDuplicates,
    NearestOrdering,
    OneDocumentPacking,
    OrderingConfig,
    SequentialOrdering,
    StandardOrdering,
)
from paribus.ordering import bm25, contexts, duplicates, embeddings, neighbours, orders, statistics
from paribus.ordering.arrays import NeighbourLists
from paribus.ordering.packing import Contexts
from paribus.ordering.shuffle import permute
from paribus.pipeline.graph import STAGES
from support.corpora import write_corpus
from support.orders import digest, formula_vectors, ordering_context, topics, write_embeddings, write_lists
from support.packings import packed
from support.training_inputs import write_inputs

COPIES = topics(60)
COPIES[31], COPIES[17], COPIES[40] = COPIES[1], COPIES[2].upper() + "!", "鲸鱼在海里"


def test_tfidf_embeddings_keep_their_cosines(tmp_path: Path) -> None:
    context = ordering_context(tmp_path, "embeddings", corpus=write_corpus(tmp_path / "corpus", topics(60)))
    embeddings.build(context)
    rows = embeddings.Embeddings(context.output).rows(0, 60)
    cosines = rows @ rows.T
    assert STAGES["embeddings"].code_version == 2
    assert [round(float(cosines[0, j]), 2) for j in (1, 5, 15, 20)] == [0.09, 0.6, 0.65, 0.6]
    assert round(float(np.abs(cosines).mean()), 2) == 0.2


def test_neighbours_keep_their_digests(tmp_path: Path) -> None:
    vectors = write_embeddings(tmp_path / "embeddings", formula_vectors())
    context = ordering_context(tmp_path, "neighbours", embeddings=vectors)
    neighbours.build(context)
    lists = NeighbourLists(context.output)
    assert STAGES["neighbours"].code_version == 2
    assert digest(lists.ids) == "4367e3f31055cf69"
    assert digest(lists.similarities.round(4)) == "1893e6ea196aa668"


def test_signatures_keep_their_digest() -> None:
    assert digest(duplicates.sign(COPIES, MinHashDuplicates(permutations=16))) == "5eebf2ac7dabf17d"


@pytest.mark.parametrize(
    ("config", "pinned"),
    [(ExactDuplicates(), "65dc441271a1fccc"), (MinHashDuplicates(threshold=0.5), "bb5ae076dfb0c6cd")],
)
def test_duplicates_keep_their_digest(tmp_path: Path, config: DuplicatesConfig, pinned: str) -> None:
    corpus = write_corpus(tmp_path / "corpus", COPIES, group_bytes=500, shard_bytes=2000)
    context = ordering_context(tmp_path, "duplicates", groups={"duplicates": config}, corpus=corpus)
    duplicates.build(context)
    made = duplicates.Duplicates(context.output)
    columns = [made.removed()[name].to_numpy() for name in ("document", "kept", "similarity", "bytes")]
    assert (STAGES["duplicates"].code_version, digest(made.kept, *columns)) == (1, pinned)


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


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Vectors from a formula and their exact neighbours, so that no pin depends on an embedder or an index."""
    root = tmp_path_factory.mktemp("inputs")
    vectors = formula_vectors(DOCUMENTS)
    lists = write_lists(root / "neighbours", vectors, 10)
    return {
        "corpus": write_corpus(root / "corpus", topics(DOCUMENTS)),
        "embeddings": write_embeddings(root / "embeddings", vectors),
        "neighbours": lists,
        "lexical_neighbours": lists,
    }


@pytest.mark.parametrize(("ordering", "pinned"), ORDERS, ids=[ordering.kind for ordering, _ in ORDERS])
def test_an_order_keeps_its_digest(
    tmp_path: Path, inputs: dict[str, Path], ordering: OrderingConfig, pinned: str
) -> None:
    result = orders.build(ordering_context(tmp_path, "order", ordering, seed=7, **inputs))
    assert str(result["digest"])[:16] == pinned


def test_lexical_neighbours_keep_their_digests(tmp_path: Path, inputs: dict[str, Path]) -> None:
    context = ordering_context(tmp_path, "lexical_neighbours", LexicalOrdering(neighbours=5), corpus=inputs["corpus"])
    bm25.build(context)
    assert STAGES["lexical_neighbours"].code_version == 1
    assert digest(np.load(context.output / "neighbours.npy")) == "747d76df46b46067"
    assert digest(np.load(context.output / "similarities.npy").round(4)) == "98447b6abb0accad"


ROWS = [[0, 1, 2, 3, 4, 5, 6], [], list(range(10, 23)), [30], [40, 41, 42]]
ROW_ORDER = [2, 1, 0, 4, 3]
__ = -1


def rows(packing: Contexts) -> list[tuple[list[int], list[int]]]:
    inputs, targets = packing.rows(np.arange(packing.count))
    return list(zip(inputs.tolist(), targets.tolist(), strict=True))


def test_concatenated_contexts_keep_their_tokens() -> None:
    assert rows(packed(ROWS, ROW_ORDER, 6)) == [
        ([10, 11, 12, 13, 14, 15], [11, 12, 13, 14, 15, 16]),
        ([16, 17, 18, 19, 20, 21], [17, 18, 19, 20, 21, 22]),
        ([22, 99, 99, 0, 1, 2], [99, 99, 0, 1, 2, 3]),
        ([3, 4, 5, 6, 99, 40], [4, 5, 6, 99, 40, 41]),
    ]


def test_contexts_of_groups_keep_their_tokens() -> None:
    assert rows(packed(ROWS, ROW_ORDER, 6, groups=[0, 1, 3, 4, 5])) == [
        ([10, 11, 12, 13, 14, 15], [11, 12, 13, 14, 15, 16]),
        ([99, 0, 1, 2, 3, 4], [0, 1, 2, 3, 4, 5]),
    ]


@pytest.mark.parametrize("window", [1024, None])
def test_fitted_contexts_keep_their_tokens(window: int | None) -> None:
    assert rows(packed(ROWS, ROW_ORDER, 6, BestFitPacking(window=window))) == [
        ([99, 10, 11, 12, 13, 14], [10, 11, 12, 13, 14, 15]),
        ([99, 15, 16, 17, 18, 19], [__, 16, 17, 18, 19, 20]),
        ([99, 20, 21, 22, 99, 99], [__, 21, 22, 99, 99, __]),
        ([99, 0, 1, 2, 3, 4], [0, 1, 2, 3, 4, 5]),
        ([99, 5, 6, 99, 99, 99], [__, 6, 99, __, __, __]),
        ([99, 40, 41, 42, 99, 30], [40, 41, 42, 99, 30, 99]),
    ]


def test_contexts_fitted_in_windows_keep_their_tokens() -> None:
    assert rows(packed(ROWS, ROW_ORDER, 6, BestFitPacking(window=2)))[2:] == [
        ([99, 20, 21, 22, 99, 99], [__, 21, 22, 99, 99, __]),
        ([99, 0, 1, 2, 3, 4], [0, 1, 2, 3, 4, 5]),
        ([99, 5, 6, 99, 99, 99], [__, 6, 99, __, __, __]),
        ([99, 40, 41, 42, 99, 99], [40, 41, 42, 99, __, __]),
        ([99, 30, 99, 99, 99, 99], [30, 99, __, __, __, __]),
    ]


def test_contexts_of_one_document_keep_their_tokens() -> None:
    assert rows(packed(ROWS, ROW_ORDER, 6, OneDocumentPacking()))[2:] == [
        ([99, 20, 21, 22, 99, 99], [__, 21, 22, 99, __, __]),
        ([99, 99, 99, 99, 99, 99], [99, __, __, __, __, __]),
        ([99, 0, 1, 2, 3, 4], [0, 1, 2, 3, 4, 5]),
        ([99, 5, 6, 99, 99, 99], [__, 6, 99, __, __, __]),
        ([99, 40, 41, 42, 99, 99], [40, 41, 42, 99, __, __]),
        ([99, 30, 99, 99, 99, 99], [30, 99, __, __, __, __]),
    ]


def test_the_order_of_contexts_keeps_its_values() -> None:
    assert permute(np.arange(10), 1000, seed=7, epoch=3).tolist() == [507, 811, 354, 584, 310, 994, 176, 768, 689, 346]


NUMBERS = {
    "documents": 40,
    "removed": 0,
    "entries": 40,
    "contexts": 8,
    "target_tokens": 1600,
    "documents_per_context": 5.5,
    "cut_share": 8 / 37,
    "padding": 0.0,
    "left_out_tokens": 168,
}
SIMILARITIES = {
    "similarity_inside": -0.01382,
    "similarity_shuffled": 0.00588,
    "similarity_random": -0.01810,
    "similarity_following": 0.00710,
    "similarity_adjacent": -0.01422,
}


def test_the_statistics_of_contexts_keep_their_values(tmp_path: Path) -> None:
    inputs = write_inputs(tmp_path)
    vectors = write_embeddings(tmp_path / "embeddings", formula_vectors(40, 16))
    model = LlamaModel(width=8, layers=1, heads=1, ffn_width=8, context_length=200)
    groups = {"model": model}
    packing = ordering_context(tmp_path, "contexts", groups=groups, seed=5, **inputs)
    contexts.build(packing)
    made = {**inputs, "contexts": packing.output, "embeddings": vectors}
    context = ordering_context(tmp_path, "context_statistics", groups=groups, seed=5, **made)
    numbers = statistics.build(context)
    assert STAGES["context_statistics"].code_version == 3
    assert {name: numbers[name] for name in NUMBERS} == NUMBERS
    similar = {name: value for name, value in numbers.items() if name.startswith("similarity")}
    assert similar == pytest.approx(SIMILARITIES, abs=1e-4)
    curves = json.loads((context.output / "statistics.json").read_text(encoding="utf-8"))["curves"]
    assert sum(curves["similarity_inside"]) == sum(curves["contexts_of_documents"]) == 8
    assert len(curves["positions"]) == 40 and sorted(curves["positions"]) == [place / 40 for place in range(40)]
    assert np.nanmean(curves["similarity_along"]) == pytest.approx(similar["similarity_adjacent"], abs=0.02)
