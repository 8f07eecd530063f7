"""The stages embeddings, neighbours and order on files."""

import io
import itertools
import json
from pathlib import Path

import numpy as np
import pytest
import zstandard

from ordering_support import IN_CONTEXT, stage_context, topics, write_corpus
from paribus.config.groups.ordering import InContextOrdering, OrderingConfig, StandardOrdering, TfidfEmbedder
from paribus.errors import DataError
from paribus.ordering import traverse
from paribus.ordering.stages import build_embeddings, build_neighbours, build_order
from paribus.pipeline.context import JSON


def run_stages(root: Path, corpus: Path, ordering: OrderingConfig, seed: int = 0) -> dict[str, dict[str, JSON]]:
    results = {}
    for stage, build in [("embeddings", build_embeddings), ("neighbours", build_neighbours), ("order", build_order)]:
        inputs = {"corpus": corpus, "embeddings": root / "embeddings", "neighbours": root / "neighbours"}
        results[stage] = build(stage_context(root, stage, ordering, seed=seed, **inputs))
    return results


def test_the_in_context_order_is_a_path_through_documents_that_are_no_near_duplicates(tmp_path: Path) -> None:
    texts = topics(60)
    texts[31], texts[17] = texts[1].upper(), texts[2] + "!"
    results = run_stages(tmp_path, write_corpus(tmp_path / "corpus", texts), IN_CONTEXT)
    embeddings = np.load(tmp_path / "embeddings" / "embeddings.npy")
    neighbours = np.load(tmp_path / "neighbours" / "neighbours.npy")
    similarities = np.load(tmp_path / "neighbours" / "similarities.npy")
    order = np.load(tmp_path / "order" / "order.npy")
    assert (embeddings.shape, embeddings.dtype) == ((60, 64), np.float32)
    assert (neighbours.shape, neighbours.dtype) == ((60, 10), np.int64)
    assert (similarities.shape, similarities.dtype) == ((60, 10), np.float32)
    assert order.dtype == np.int64
    assert sorted({*range(60)} - set(order.tolist())) == [17, 31]
    statistics = results["order"]
    assert statistics["documents"] == 58 and statistics["duplicates_removed"] == 2
    edges = {
        frozenset((i, j))
        for i in order.tolist()
        for j in [j for j in neighbours[i].tolist() if j in order][: IN_CONTEXT.path_neighbours]
    }
    along_edges = sum(frozenset(pair) in edges for pair in itertools.pairwise(order.tolist()))
    assert statistics["edges"] == len(edges) and statistics["jumps"] == 57 - along_edges
    adjacent = np.einsum("nd,nd->n", embeddings[order[1:]], embeddings[order[:-1]])
    assert 0.5 < float(str(statistics["mean_similarity_of_adjacent"])) <= adjacent.mean() + 1e-6
    assert results["embeddings"] == {"documents": 60, "dimensions": 64, "zero_rows": 0}
    assert results["neighbours"]["without_neighbours"] == 0
    json.dumps(results)


def test_without_duplicates_and_with_every_neighbour_the_order_is_the_promised_traversal(tmp_path: Path) -> None:
    ordering = InContextOrdering(
        embedder=TfidfEmbedder(dimensions=16), retrieved_neighbours=6, path_neighbours=6, duplicate_threshold=1.0
    )
    run_stages(tmp_path, write_corpus(tmp_path / "corpus", topics(40)), ordering, seed=4)
    lists = [np.load(tmp_path / "neighbours" / f"{name}.npy") for name in ("neighbours", "similarities")]
    assert np.array_equal(np.load(tmp_path / "order" / "order.npy"), traverse(*lists, seed=4))


def test_the_standard_order_is_a_seeded_permutation(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "corpus", topics(50))
    orders = []
    for name, seed in [("a", 1), ("b", 1), ("c", 2)]:
        context = stage_context(tmp_path, name, StandardOrdering(), seed=seed, corpus=corpus)
        assert build_order(context)["documents"] == 50
        orders.append(np.load(context.output / "order.npy"))
    assert orders[0].dtype == np.int64 and sorted(orders[0].tolist()) == list(range(50))
    assert np.array_equal(orders[0], orders[1]) and not np.array_equal(orders[0], orders[2])


@pytest.mark.parametrize("documents", [1, 2])
def test_a_handful_of_documents_can_be_ordered(tmp_path: Path, documents: int) -> None:
    run_stages(tmp_path, write_corpus(tmp_path / "corpus", topics(documents)), IN_CONTEXT)
    assert sorted(np.load(tmp_path / "order" / "order.npy").tolist()) == list(range(documents))


def test_an_empty_training_split_is_refused(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "corpus", [])
    with pytest.raises(DataError, match="no documents"):
        build_order(stage_context(tmp_path, "order", StandardOrdering(), corpus=corpus))
    with pytest.raises(DataError, match="no documents"):
        build_embeddings(stage_context(tmp_path, "embeddings", IN_CONTEXT, corpus=corpus))


def test_related_documents_of_a_real_corpus_stand_beside_each_other(tmp_path: Path, shared_data: Path) -> None:
    with zstandard.open(shared_data / "corpora" / "english_mixed.jsonl.zst", "rb") as file:
        lines = itertools.islice(io.TextIOWrapper(file, encoding="utf-8"), 1500)
        texts = [json.loads(line)["text"] for line in lines]
    ordering = InContextOrdering(embedder=TfidfEmbedder(dimensions=64, max_characters=4000))
    results = run_stages(tmp_path, write_corpus(tmp_path / "corpus", texts), ordering)
    embeddings = np.load(tmp_path / "embeddings" / "embeddings.npy")
    order = np.load(tmp_path / "order" / "order.npy")
    shuffled = np.random.default_rng(0).permutation(order)
    in_context, random = (
        float(np.einsum("nd,nd->n", embeddings[path[1:]], embeddings[path[:-1]]).mean()) for path in (order, shuffled)
    )
    assert in_context > 0.5 and in_context > 2 * random
    assert int(str(results["order"]["jumps"])) < len(order) / 4
