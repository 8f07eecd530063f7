"""Batches as a pure function of the step."""

import numpy as np
import pytest

from paribus.config.groups.ordering import (
    BestFitPacking,
    ConcatenatePacking,
    OneDocumentPacking,
    PackingConfig,
    Shuffle,
)
from paribus.ordering.contexts import pack
from paribus.ordering.packing import Contexts
from paribus.training.data import Batches, context_targets, context_text_bytes
from support.packings import FixedOrder, traversal_of

LENGTHS = np.array([1, 2, 3, 4, 5, 6, 7, 0])
EOS = 7


def packed(packing: PackingConfig | None = None, documents: int = 23, context_length: int = 5) -> Contexts:
    random = np.random.default_rng(0)
    sizes = random.integers(0, 9, documents)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    ids = random.integers(0, EOS, offsets[-1]).astype(np.uint16)
    order = FixedOrder(random.permutation(documents))
    return pack(packing or ConcatenatePacking(), ids, offsets, order, EOS, context_length)


def batches(global_batch: int, seed: int, packing: PackingConfig | None = None) -> Batches:
    chosen = packing or ConcatenatePacking(stretch_bytes=16)
    contexts = packed(chosen)
    return Batches(contexts, global_batch, traversal_of(chosen, contexts, LENGTHS, seed))


def test_every_epoch_reads_every_context_once_in_another_order() -> None:
    drawn = batches(4, 0)
    count = drawn.contexts.count
    steps = np.concatenate([drawn.indices(step) for step in range(count)])
    epochs = steps.reshape(4, count)
    assert all(sorted(epoch) == list(range(count)) for epoch in epochs.tolist())
    assert len({tuple(epoch) for epoch in epochs.tolist()}) == 4


def test_a_step_is_the_same_whether_or_not_others_were_asked_for_before() -> None:
    walked = batches(4, 1)
    rows = [walked.rows(step) for step in range(40)]
    sought = batches(4, 1)
    assert np.array_equal(sought.rows(39), rows[39])
    assert np.array_equal(sought.rows(7), rows[7])


@pytest.mark.parametrize(("start", "stop"), [(0, 0), (0, 150), (63, 65), (100, 129)])
def test_the_indices_of_many_steps_are_those_of_each(start: int, stop: int) -> None:
    drawn = batches(4, 1)
    walked = list(drawn.each(start, stop))
    assert [step for step, _ in walked] == list(range(start, stop))
    assert all(np.array_equal(indices, drawn.indices(step)) for step, indices in walked)


def test_pieces_of_a_batch_are_rows_of_it() -> None:
    drawn = batches(7, 2)
    for micro_batch in (1, 2, 3, 7):
        pieces = [drawn.rows(5, start, start + micro_batch) for start in range(0, 7, micro_batch)]
        assert np.array_equal(np.concatenate(pieces, axis=1), drawn.rows(5))


def test_a_larger_global_batch_reads_the_same_contexts_in_the_same_order() -> None:
    small, large = (batches(size, 3) for size in (2, 8))
    assert np.array_equal(np.concatenate([small.indices(step) for step in range(4, 8)]), large.indices(1))


def test_another_seed_reads_in_another_order() -> None:
    first, second = (batches(8, seed) for seed in (0, 1))
    assert not np.array_equal(first.indices(0), second.indices(0))


def test_without_a_shuffle_contexts_are_read_in_their_sequence_epoch_after_epoch() -> None:
    drawn = batches(4, 0, ConcatenatePacking(shuffle="none"))
    read = np.concatenate([drawn.indices(step) for step in range(20)])
    assert read.tolist() == [number % drawn.contexts.count for number in range(80)]


@pytest.mark.parametrize("shuffle", ["text", "contexts", "none"])
@pytest.mark.parametrize("global_batch", [1, 4, 60])
def test_how_often_a_context_is_read_is_found_without_looking_at_others(shuffle: Shuffle, global_batch: int) -> None:
    drawn = batches(global_batch, 5, ConcatenatePacking(shuffle=shuffle, stretch_bytes=16))
    every = np.arange(drawn.contexts.count)
    for steps in (0, 1, 7, 40):
        read = [context for step in range(steps) for context in drawn.indices(step).tolist()]
        assert drawn.times_read(every, steps).tolist() == np.bincount(read, minlength=len(every)).tolist()


PACKINGS = [ConcatenatePacking(), BestFitPacking(), OneDocumentPacking()]


@pytest.mark.parametrize("packing", PACKINGS, ids=str)
def test_text_bytes_are_those_of_each_contexts_targets(packing: PackingConfig) -> None:
    contexts = packed(packing)
    expected = [sum(LENGTHS[t] for t in row if t >= 0) for row in all_targets(contexts)]
    assert context_text_bytes(contexts, LENGTHS).tolist() == expected


@pytest.mark.parametrize("packing", PACKINGS, ids=str)
def test_targets_are_those_of_each_context(packing: PackingConfig) -> None:
    contexts = packed(packing)
    expected = [sum(t >= 0 for t in row) for row in all_targets(contexts)]
    assert context_targets(contexts).tolist() == expected


def all_targets(contexts: Contexts) -> list[list[int]]:
    targets: list[list[int]] = contexts.rows(np.arange(contexts.count))[1].tolist()
    return targets
