"""Statistics of packings, against counting row by row."""

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

from paribus.config.groups.ordering import BestFitPacking, ConcatenatePacking, OneDocumentPacking, PackingConfig
from paribus.ordering.embeddings import Embeddings
from paribus.ordering.packing import Contexts
from paribus.ordering.shuffle import ContextShuffle, Sequential, ShuffledContexts, permute
from paribus.ordering.statistics import context_similarity, packing_statistics
from support.orders import formula_vectors, write_embeddings
from support.packings import corpora, held, packed, stream

PACKINGS = [ConcatenatePacking(), BestFitPacking(window=None), BestFitPacking(window=3), OneDocumentPacking()]


@pytest.mark.parametrize("packing", PACKINGS, ids=str)
@given(corpus=corpora())
def test_statistics_of_packings_are_those_of_counting_rows(
    packing: PackingConfig, corpus: tuple[list[list[int]], list[int], int]
) -> None:
    documents, order, length = corpus
    contexts = packed(documents, order, length, packing)
    rows = [held(contexts, index) for index in range(contexts.count)]
    statistics = packing_statistics(contexts)
    in_rows = [len({position for position, _ in row}) for row in rows]
    read = {place for row in rows for place in row}
    ends = {
        position: {(position, place) for place in range(len(documents[order[position]]) + 1)} for position, _ in read
    }
    whole = sum(any(tokens <= set(row) for row in rows) for tokens in ends.values())
    targets = int((contexts.rows(np.arange(contexts.count))[1] >= 0).sum())
    assert (statistics.contexts, statistics.context_length) == (contexts.count, length)
    assert statistics.documents_per_context == pytest.approx(np.mean(in_rows))
    assert list(statistics.contexts_of_documents) == np.bincount(in_rows).tolist()
    assert statistics.target_tokens == targets
    assert statistics.padding == pytest.approx(1 - targets / (contexts.count * length))
    assert statistics.documents == len(ends)
    assert statistics.cut_documents == len(ends) - whole
    assert statistics.cut_share == statistics.cut_documents / len(ends)
    assert statistics.left_out_tokens == len(set(stream(documents, order)) - read)


LENGTHS = [3, 1, 4, 2, 6, 1, 2, 5, 3, 2]
ORDER = [4, 2, 9, 0, 1, 7, 3, 8, 5, 6]


def contexts_and_vectors(directory: Path, vectors: np.ndarray) -> tuple[Contexts, Embeddings]:
    documents = [[number] * length for number, length in enumerate(LENGTHS)]
    return packed(documents, ORDER, length=6), Embeddings(write_embeddings(directory, vectors))


def cosine(vectors: np.ndarray, first: int, second: int) -> float:
    return float(vectors[first].astype(np.float64) @ vectors[second].astype(np.float64))


@pytest.mark.parametrize("shuffle", [True, False])
def test_similarities_are_means_over_the_pairs_of_a_context_and_of_the_next_one(tmp_path: Path, shuffle: bool) -> None:
    contexts, embeddings = contexts_and_vectors(tmp_path, formula_vectors(10, 16))
    vectors, count = embeddings.rows(0, 10), contexts.count
    traversal: ContextShuffle = ShuffledContexts(count, 3) if shuffle else Sequential(count)
    similarity = context_similarity(contexts, contexts, embeddings, traversal, seed=3)
    trained = permute(np.arange(count), count, seed=3, epoch=0).tolist() if shuffle else list(range(count))
    rows = [[document for document, _ in contexts.documents_of(context)] for context in trained]
    for number, documents in enumerate(rows):
        pairs = [cosine(vectors, a, b) for a, b in itertools.combinations(documents, 2)]
        assert similarity.inside[number] == pytest.approx(np.mean(pairs) if pairs else math.nan, nan_ok=True)
        across = [cosine(vectors, a, b) for a in documents for b in rows[(number + 1) % count] if a != b]
        assert similarity.following[number] == pytest.approx(np.mean(across))
    adjacent = [cosine(vectors, a, b) for a, b in itertools.pairwise(ORDER)]
    assert similarity.adjacent == pytest.approx(adjacent)
    assert similarity.along() == pytest.approx(adjacent)
