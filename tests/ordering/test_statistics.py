"""Statistics of packings, against counting row by row."""

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

from paribus.config.groups.ordering import BestFitPacking, ConcatenatePacking, OneDocumentPacking, PackingConfig
from paribus.ordering.embeddings import Embeddings, EmbeddingsWriter
from paribus.ordering.packing import Contexts
from paribus.ordering.shuffle import ContextShuffle, Sequential, ShuffledContexts, permute
from paribus.ordering.statistics import context_similarity, mean, packing_statistics
from support.orders import formula_vectors
from support.packings import corpora, held, packed, stream

PACKINGS = [ConcatenatePacking(), BestFitPacking(window=None), BestFitPacking(window=3), OneDocumentPacking()]


@pytest.mark.parametrize("packing", PACKINGS, ids=str)
@given(corpus=corpora())
def test_they_are_what_counting_rows_gives(
    packing: PackingConfig, corpus: tuple[list[list[int]], list[int], int]
) -> None:
    documents, order, length = corpus
    contexts = packed(documents, order, length, packing)
    rows = [held(contexts, index) for index in range(contexts.count)]
    found = packing_statistics(contexts)
    held_documents = [len({position for position, _ in row}) for row in rows]
    to_plain = set(stream(documents, order))
    read = {place for row in rows for place in row}
    whole = {position for row in rows for position in {p for p, _ in row} if _all_of(position, documents, order, row)}
    targets = int((contexts.rows(np.arange(contexts.count))[1] >= 0).sum())
    assert found.contexts == contexts.count
    assert found.context_length == length
    assert found.documents_per_context == pytest.approx(np.mean(held_documents))
    assert list(found.contexts_of_documents) == np.bincount(held_documents).tolist()
    assert found.target_tokens == targets
    assert found.padding == pytest.approx(1 - targets / (contexts.count * length))
    assert found.documents == len({position for position, _ in read})
    assert found.cut_documents == found.documents - len(whole)
    assert found.cut_share == found.cut_documents / found.documents
    assert found.left_out_tokens == len(to_plain - read)


def _all_of(position: int, documents: list[list[int]], order: list[int], row: list[tuple[int, int]]) -> bool:
    return all((position, place) in row for place in range(len(documents[order[position]]) + 1))


def test_best_fit_cuts_fewer_documents_than_concatenation_and_pads_less_than_one_document() -> None:
    random = np.random.default_rng(1)
    documents = [[1] * size for size in random.geometric(1 / 40, 500)]
    concatenated, fitted, alone = (
        packing_statistics(packed(documents, length=128, packing=packing))
        for packing in (ConcatenatePacking(), BestFitPacking(window=None), OneDocumentPacking())
    )
    assert concatenated.padding == 0
    assert 0 < fitted.padding < 0.03
    assert alone.padding > 0.5
    assert fitted.cut_documents == alone.cut_documents == sum(len(document) > 128 for document in documents)
    assert concatenated.cut_share > 0.25
    assert fitted.cut_share < 0.05
    assert alone.documents_per_context == 1


# How alike the documents of contexts are, against all pairs counted out.

LENGTHS = [3, 1, 4, 2, 6, 1, 2, 5, 3, 2]
ORDER = [4, 2, 9, 0, 1, 7, 3, 8, 5, 6]


def contexts_and_vectors(directory: Path, vectors: np.ndarray) -> tuple[Contexts, Embeddings]:
    documents = [[number] * length for number, length in enumerate(LENGTHS)]
    np.save(directory / "part.npy", vectors.astype(np.float16))
    writer = EmbeddingsWriter(directory)
    writer.add([directory / "part.npy"])
    writer.close()
    return packed(documents, ORDER, length=6), Embeddings(directory)


def cosine(vectors: np.ndarray, first: int, second: int) -> float:
    return float(vectors[first].astype(np.float64) @ vectors[second].astype(np.float64))


@pytest.mark.parametrize("shuffle", [True, False])
def test_similarities_are_means_over_the_pairs_of_a_context_and_of_the_next_one(tmp_path: Path, shuffle: bool) -> None:
    contexts, embeddings = contexts_and_vectors(tmp_path, formula_vectors(10, 16))
    vectors = embeddings.rows(0, 10)
    count = contexts.count
    traversal: ContextShuffle = ShuffledContexts(count, 3) if shuffle else Sequential(count)
    found = context_similarity(contexts, contexts, embeddings, traversal, seed=3)
    trained = permute(np.arange(count), count, seed=3, epoch=0).tolist() if shuffle else list(range(count))
    held = [[document for document, _ in contexts.documents_of(context)] for context in trained]
    for number, documents in enumerate(held):
        pairs = [cosine(vectors, a, b) for a, b in itertools.combinations(documents, 2)]
        assert found.inside[number] == pytest.approx(np.mean(pairs)) if pairs else math.isnan(found.inside[number])
        others = held[(number + 1) % count]
        across = [cosine(vectors, a, b) for a in documents for b in others if a != b]
        assert found.following[number] == pytest.approx(np.mean(across))
    adjacent = [cosine(vectors, a, b) for a, b in itertools.pairwise(ORDER)]
    assert found.adjacent == pytest.approx(adjacent)
    assert found.along() == pytest.approx(adjacent)


def test_documents_without_a_direction_are_left_out(tmp_path: Path) -> None:
    vectors = formula_vectors(10, 16)
    vectors[[4, 2]] = 0
    contexts, embeddings = contexts_and_vectors(tmp_path, vectors)
    found = context_similarity(contexts, contexts, embeddings, Sequential(contexts.count), seed=0)
    assert math.isnan(found.adjacent[0]) and math.isnan(found.adjacent[1]) and math.isfinite(found.adjacent[2])
    assert math.isfinite(mean(found.inside))


def test_inside_is_as_shuffled_where_the_order_is_random(tmp_path: Path) -> None:
    """Long documents fill contexts alone, and short ones are alike: inside is above random, and no order did that."""
    generator = np.random.default_rng(2)
    long = generator.random(600) < 0.1
    documents = [[number % 90] * (60 if long[number] else 1) for number in range(600)]
    vectors = np.zeros((600, 16), dtype=np.float32)
    vectors[np.arange(600), np.where(long, generator.integers(1, 16, 600), 0)] = 1
    np.save(tmp_path / "part.npy", vectors.astype(np.float16))
    writer = EmbeddingsWriter(tmp_path)
    writer.add([tmp_path / "part.npy"])
    writer.close()
    contexts, shuffled = (packed(documents, generator.permutation(600).tolist(), length=8) for _ in range(2))
    traversal = ShuffledContexts(contexts.count, 0)
    found = context_similarity(contexts, shuffled, Embeddings(tmp_path), traversal, seed=0)
    assert mean(found.inside) == pytest.approx(mean(found.shuffled), abs=0.05)
    assert mean(found.inside) - mean(found.random) > 0.3
