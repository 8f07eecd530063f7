"""Best-fit-decreasing, against bins searched one by one."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paribus.config.groups.ordering import BestFitPacking, OneDocumentPacking
from paribus.ordering.packing import OrderedDocuments, best_fit, best_fit_decreasing
from support.packings import EOS, corpora, held, packed


def searched(lengths: list[int], capacity: int) -> list[list[int]]:
    """Items of each bin: the longest first, into the fullest bin with room; of equally full ones the last filled."""
    bins: list[list[int]] = []
    filled: list[list[int]] = []
    for item in sorted(range(len(lengths)), key=lambda item: -lengths[item]):
        rooms = [(capacity - sum(lengths[other] for other in chosen), chosen) for chosen in filled]
        fitting = [room for room, _ in rooms if room >= lengths[item]]
        if fitting:
            chosen = next(chosen for room, chosen in reversed(rooms) if room == min(fitting))
            filled.remove(chosen)
        else:
            chosen = []
            bins.append(chosen)
        chosen.append(item)
        filled.append(chosen)
    return bins


@settings(max_examples=300, deadline=None)
@given(st.lists(st.integers(1, 12), max_size=40), st.integers(12, 20))
def test_items_go_into_the_fullest_bin_that_takes_them(lengths: list[int], capacity: int) -> None:
    assigned = best_fit_decreasing(np.array(lengths, dtype=np.int64), capacity)
    expected = searched(lengths, capacity)
    assert assigned.tolist() == [next(b for b, items in enumerate(expected) if i in items) for i in range(len(lengths))]


def test_the_example_of_the_paper_fits_four_sequences() -> None:
    lengths = np.array([8, 6, 7, 5, 2, 3])
    assigned = best_fit_decreasing(lengths, 8)
    assert sorted(np.bincount(assigned, weights=lengths).tolist()) == [7, 8, 8, 8]


@settings(max_examples=200, deadline=None)
@given(corpora(), st.sampled_from([None, 1, 2, 4]))
def test_only_documents_longer_than_a_context_are_cut(
    corpus: tuple[list[list[int]], list[int], int], window: int | None
) -> None:
    documents, order, length = corpus
    contexts = packed(documents, order, length, BestFitPacking(window=window))
    pieces = contexts.pieces(np.arange(contexts.count))
    for position, tokens in zip(pieces.positions.tolist(), pieces.lengths.tolist(), strict=True):
        size = len(documents[order[position]]) + 1
        if size <= length:
            assert tokens == size
        else:
            assert tokens in (length, (size - 2) % (length - 1) + 2)


@settings(max_examples=200, deadline=None)
@given(corpora(), st.sampled_from([None, 1, 2, 4]))
def test_contexts_hold_the_sequence_of_a_window_and_are_numbered_by_their_first_piece(
    corpus: tuple[list[list[int]], list[int], int], window: int | None
) -> None:
    contexts = packed(*corpus, BestFitPacking(window=window))
    rows = [held(contexts, index) for index in range(contexts.count)]
    assert all(row == sorted(row) for row in rows)
    assert [row[0] for row in rows] == sorted(row[0] for row in rows)
    if window:
        assert all(len({position // window for position, _ in row}) == 1 for row in rows)


def test_a_window_of_one_document_is_one_document_a_context() -> None:
    documents = [[1, 2], [3], [], list(range(11))]
    alone, windowed = (packed(documents, packing=kind) for kind in (OneDocumentPacking(), BestFitPacking(window=1)))
    assert alone.count == windowed.count == 7
    for first, second in zip(alone.rows(np.arange(7)), windowed.rows(np.arange(7)), strict=True):
        assert first.tolist() == second.tolist()


def test_the_rest_of_a_cut_document_is_not_predicted_from_the_document_before_it() -> None:
    contexts = packed([[1, 2], list(range(10, 15))], length=5, packing=BestFitPacking())
    inputs, targets = contexts.rows(np.arange(contexts.count))
    assert inputs.tolist() == [[EOS, 1, 2, EOS, 14], [EOS, 10, 11, 12, 13]]
    assert targets.tolist() == [[1, 2, EOS, -1, EOS], [10, 11, 12, 13, 14]]
    assert contexts.documents_of(0) == [(0, 3), (1, 2)]
    assert contexts.contexts_of(1).tolist() == [0, 1]


@pytest.mark.parametrize("window", [1024, None])
def test_a_million_documents_take_seconds(window: int | None) -> None:
    sizes = np.random.default_rng(0).lognormal(6, 1.2, 1_000_000).astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    documents = OrderedDocuments(np.empty(0, dtype=np.uint16), offsets, np.arange(len(sizes)), EOS)
    began = time.process_time()
    contexts = best_fit(documents, 2048, window)
    assert time.process_time() - began < 30
    held_tokens = contexts.target_tokens(np.arange(contexts.count)).sum()
    assert held_tokens / (contexts.count * 2048) > (0.995 if window is None else 0.97)
