"""Statistics of packings, against counting row by row."""

import numpy as np
import pytest
from hypothesis import given, settings

from paribus.config.groups.ordering import BestFitPacking, ConcatenatePacking, OneDocumentPacking, PackingConfig
from paribus.ordering.statistics import packing_statistics
from support.packings import corpora, held, packed, stream

PACKINGS = [ConcatenatePacking(), BestFitPacking(window=None), BestFitPacking(window=3), OneDocumentPacking()]


@pytest.mark.parametrize("packing", PACKINGS, ids=str)
@settings(max_examples=100, deadline=None)
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
