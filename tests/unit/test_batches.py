"""Batches as a pure function of the step."""

import numpy as np

from paribus.ordering.contexts import PackedStream
from paribus.training.batches import Batches, context_text_bytes

LENGTHS = np.array([1, 2, 3, 4, 5, 6, 7, 0])
EOD = 7


def stream(documents: int = 23, context_length: int = 5) -> PackedStream:
    random = np.random.default_rng(0)
    sizes = random.integers(0, 9, documents)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    ids = random.integers(0, EOD, offsets[-1]).astype(np.uint16)
    return PackedStream(ids, offsets, random.permutation(documents), EOD, context_length)


def test_every_epoch_reads_every_context_once_in_another_order() -> None:
    batches = Batches(stream(), global_batch=4, seed=0)
    count = batches.stream.count
    steps = np.concatenate([batches.indices(step) for step in range(count)])
    epochs = steps.reshape(4, count)
    assert all(sorted(epoch) == list(range(count)) for epoch in epochs.tolist())
    assert len({tuple(epoch) for epoch in epochs.tolist()}) == 4


def test_a_step_is_the_same_whether_or_not_others_were_asked_for_before() -> None:
    walked = Batches(stream(), global_batch=4, seed=1)
    rows = [walked.contexts(step) for step in range(40)]
    sought = Batches(stream(), global_batch=4, seed=1)
    assert np.array_equal(sought.contexts(39), rows[39])
    assert np.array_equal(sought.contexts(7), rows[7])


def test_pieces_of_a_batch_are_rows_of_it() -> None:
    batches = Batches(stream(), global_batch=7, seed=2)
    for micro_batch in (1, 2, 3, 7):
        pieces = [batches.contexts(5, start, start + micro_batch) for start in range(0, 7, micro_batch)]
        assert np.array_equal(np.concatenate(pieces), batches.contexts(5))


def test_a_larger_global_batch_reads_the_same_contexts_in_the_same_order() -> None:
    small, large = (Batches(stream(), global_batch=size, seed=3) for size in (2, 8))
    assert np.array_equal(np.concatenate([small.indices(step) for step in range(4, 8)]), large.indices(1))


def test_another_seed_reads_in_another_order() -> None:
    first, second = (Batches(stream(), global_batch=8, seed=seed) for seed in (0, 1))
    assert not np.array_equal(first.indices(0), second.indices(0))


def test_text_bytes_are_those_of_each_contexts_targets() -> None:
    packed = stream()
    expected = [LENGTHS[packed.context(index)[1:]].sum() for index in range(packed.count)]
    assert context_text_bytes(packed, LENGTHS).tolist() == expected
