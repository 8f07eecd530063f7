"""The sequence in which training reads contexts, and which text arms read in common."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paribus.config.groups.ordering import (
    BestFitPacking,
    ConcatenatePacking,
    OneDocumentPacking,
    PackingConfig,
    PairPacking,
)
from paribus.ordering.contexts import pack
from paribus.ordering.ordered_text import OrderedText, readings, sampled_bytes
from paribus.ordering.packing import Contexts
from paribus.ordering.shuffle import ShuffledText, first_steps, permute, straddling, traverse, unpermute
from paribus.reporting.compare import common_shares
from paribus.training.data import Batches
from support.packings import EOS, FixedOrder, measured, packed, slow_text_shuffle, text_of


def test_permute_is_a_permutation_and_unpermute_its_inverse() -> None:
    for n in (1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 63, 64, 65, 255, 256, 257, 1000, 4097, 100_003):
        places = np.arange(n)
        images = permute(places, n, seed=3, epoch=2)
        assert images.dtype == np.int64
        assert np.array_equal(np.sort(images), places)
        assert np.array_equal(unpermute(images, n, seed=3, epoch=2), places)


def test_images_are_about_uniform_over_seeds() -> None:
    trials = 1000
    for n in (2, 3, 5, 10):
        counts = np.zeros((n, n))
        for seed in range(trials):
            counts[np.arange(n), permute(np.arange(n), n, seed=seed, epoch=0)] += 1
        assert np.all(np.abs(counts - trials / n) < 5 * np.sqrt(trials / n))


BYTE_LENGTHS = np.array([1, 2, 3, 4, 5, *[0] * (EOS - 5)])
PACKINGS = [ConcatenatePacking(), BestFitPacking(window=4), OneDocumentPacking()]
DOCUMENTS = st.lists(st.lists(st.integers(0, 4), max_size=25), min_size=3, max_size=20).filter(
    lambda documents: sum(map(len, documents)) > 10
)


def slow_bytes_before(documents: list[list[int]], order: list[int], contexts: Contexts) -> list[int]:
    """Bytes of ordered text before the first token of each context, token by token."""
    sizes = []
    for context in range(contexts.count):
        pieces = contexts.pieces([context])
        position, start = int(pieces.positions[0]), int(pieces.starts[0])
        before = [token for document in order[:position] for token in documents[document]]
        before += documents[order[position]][:start]
        sizes.append(sum(int(BYTE_LENGTHS[token]) for token in before))
    return sizes


@given(documents=DOCUMENTS, data=st.data(), stretch=st.integers(3, 60), seed=st.integers(0, 3))
@pytest.mark.parametrize("packing", PACKINGS, ids=str)
def test_every_epoch_reads_contexts_in_the_sequence_of_the_reference(
    packing: PackingConfig, documents: list[list[int]], data: st.DataObject, stretch: int, seed: int
) -> None:
    order = data.draw(st.permutations(range(len(documents))))
    contexts = packed(documents, order, packing=packing)
    text = text_of(contexts, BYTE_LENGTHS)
    places = measured(contexts, text).places
    assert places.tolist() == slow_bytes_before(documents, order, contexts)
    traversal = ShuffledText(places, text.bytes, stretch, seed)
    for epoch in (0, 1, 5):
        expected = slow_text_shuffle(places.tolist(), text.bytes, stretch, seed, epoch)
        assert sorted(expected) == list(range(contexts.count))
        assert traversal.at(np.arange(contexts.count), epoch).tolist() == expected
        mixed = np.random.default_rng(seed).permutation(contexts.count)
        assert traversal.at(mixed, epoch).tolist() == [expected[place] for place in mixed]
        assert traversal.places_of(mixed, epoch).tolist() == [expected.index(context) for context in mixed]


Arm = tuple[Contexts, OrderedText]


def arm_of(token_bytes: int, packing: PackingConfig, context_tokens: int = 16) -> Arm:
    """1,500 documents of equal text, in one order, whose tokens have `token_bytes` bytes but for the last."""
    random = np.random.default_rng(5)
    sizes: list[int] = random.geometric(1 / 300, 1_500).tolist()
    byte_lengths = np.zeros(EOS + 1, dtype=np.int64)
    byte_lengths[: token_bytes + 1] = np.arange(token_bytes + 1)
    documents = [[token_bytes] * (size // token_bytes) + [size % token_bytes] for size in sizes]
    contexts = packed(documents, random.permutation(1_500).tolist(), length=context_tokens, packing=packing)
    return contexts, OrderedText(contexts.documents, sizes, byte_lengths)


def read_of(arm: Arm, times: np.ndarray) -> np.ndarray:
    """How often each sampled byte was read, by how often each context was."""
    contexts = measured(*arm)
    return readings(contexts.sampled, times.__getitem__, contexts.corpus_bytes)


def read_at(arm: Arm, packing: PackingConfig, text_bytes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """By byte of the corpus how often training predicted it until it has predicted so many bytes, and when last.

    Slow: context by context, token by token.
    """
    contexts, text = arm
    traversal = traverse(packing, measured(contexts, text), seed)
    times = np.zeros(int(text.corpus_begins[-1]), dtype=np.int64)
    when, done, sequence = np.full(len(times), -1), 0, traversal.at(np.arange(contexts.count), 0)
    for context in itertools.chain(sequence.tolist()):
        if done >= text_bytes:
            break
        pieces = contexts.pieces([context])
        for number in range(len(pieces.positions)):
            position, start = int(pieces.positions[number]), int(pieces.starts[number])
            skipped = start + (number < 1 - pieces.lead or bool(pieces.unpredicted[number]))
            first, last = (
                int(text.within(np.array([position]), np.array([token]))[0])
                for token in (skipped, start + int(pieces.lengths[number]))
            )
            begin = int(text.corpus_begins[contexts.documents.order[position]])
            times[begin + first : begin + last] += 1
            when[begin + first : begin + last] = done
            done += last - first
    return times, when


@pytest.mark.parametrize("share", [0.1, 0.4])
def test_arms_of_different_tokens_read_the_same_text_at_the_same_time(share: float) -> None:
    packing = ConcatenatePacking(stretch_bytes=1_000)
    arms = [arm_of(token_bytes, packing) for token_bytes in (3, 5, 8)]
    budget = int(share * arms[0][1].bytes)
    for (times, when), (other_times, other_when) in itertools.combinations(
        [read_at(arm, packing, budget) for arm in arms], 2
    ):
        assert common_share(times, other_times) > 0.88
        both = (times > 0) & (other_times > 0)
        assert np.median(np.abs(when[both] - other_when[both])) < 0.01 * budget + 64 * 128


def common_share(times: np.ndarray, other_times: np.ndarray) -> float:
    return float(np.minimum(times, other_times).sum() / min(times.sum(), other_times.sum()))


def test_shuffled_contexts_of_different_tokens_have_little_text_in_common() -> None:
    packing = ConcatenatePacking(shuffle="contexts")
    assert common_share(*(read_at(arm_of(size, packing), packing, 45_000)[0] for size in (3, 8))) < 0.2
    assert common_shares(np.array([2, 1, 1, 0]), np.array([1, 1, 1, 0])) == (1, 3 / 4)


def test_neighbours_of_the_order_are_a_window_apart_in_every_epoch_and_seed() -> None:
    packing = ConcatenatePacking(stretch_bytes=1_000)
    contexts, text = arm_of(5, packing)
    traversal, other_seed = (traverse(packing, measured(contexts, text), seed) for seed in (0, 1))
    apart = np.abs(np.diff(traversal.places_of(np.arange(contexts.count), 0)))
    assert 60 < np.median(apart) < 128 and (apart > 32).mean() > 0.99
    first = traversal.at(np.arange(300), 0)
    for sequence in (traversal.at(np.arange(300), 1), other_seed.at(np.arange(300), 0)):
        assert len(np.intersect1d(sequence, first)) < 150


@pytest.mark.parametrize("packing", PACKINGS, ids=str)
def test_readings_are_those_of_every_byte(packing: PackingConfig) -> None:
    arm = arm_of(5, packing)
    contexts, text = arm
    expected, _ = read_at(arm, packing, 60_000)
    batches = Batches(contexts, 1, traverse(packing, measured(contexts, text), 0))
    times = batches.times_read(np.arange(contexts.count), steps_of(arm, packing, 60_000))
    assert read_of(arm, times).tolist() == expected[sampled_bytes(len(expected))].tolist()


@pytest.mark.parametrize("packing", PACKINGS, ids=str)
def test_the_first_step_of_a_byte_is_that_of_the_first_batch_that_predicts_it(packing: PackingConfig) -> None:
    contexts, text = arm_of(5, packing)
    of_text = measured(contexts, text)
    traversal = traverse(packing, of_text, 0)
    batches = Batches(contexts, 3, traversal)
    for steps in (40, contexts.count // 3 + 5):
        expected = np.full(len(sampled_bytes(of_text.corpus_bytes)), -1)
        for step in reversed(range(steps)):
            expected[of_text.sampled[np.isin(of_text.sampled[:, 1], batches.indices(step)), 0]] = step
        assert (expected >= 0).any()
        assert first_steps(traversal, of_text, 3, steps).tolist() == expected.tolist()


def steps_of(arm: Arm, packing: PackingConfig, text_bytes: int) -> int:
    """Contexts that training reads until it has predicted so many bytes."""
    contexts, text = arm
    sequence = traverse(packing, measured(contexts, text), 0).at(np.arange(contexts.count), 0)
    lengths = np.zeros(EOS + 1, dtype=np.int64)
    lengths[:6] = np.arange(6)
    return int(np.searchsorted(np.cumsum(contexts.source_bytes(lengths, sequence)), text_bytes)) + 1


def test_straddling_contexts_are_those_with_text_of_two_stretches() -> None:
    packing = ConcatenatePacking(stretch_bytes=1_000)
    contexts, text = arm_of(5, packing)
    of_text = measured(contexts, text)
    traversal = traverse(packing, of_text, 0)
    assert isinstance(traversal, ShuffledText)
    shift = 1_000 - int(np.argmax(traversal.stretches(0).of(np.arange(1_001)) == 1))
    begins = (np.append(of_text.places, text.bytes) + shift).tolist()
    expected = [(end - 1) // 1_000 != begin // 1_000 for begin, end in itertools.pairwise(begins)]
    assert straddling(traversal, of_text) == pytest.approx(np.mean(expected), abs=0.01)
    assert straddling(traverse(ConcatenatePacking(shuffle="none"), of_text, 0), of_text) is None


def test_tokens_whose_bytes_are_not_those_of_the_text_stand_for_their_share_of_it() -> None:
    contexts = packed([[1, 1, 1, 1, 1, 1], [4, 4]], length=2)
    text = OrderedText(contexts.documents, [30, 4], BYTE_LENGTHS)
    assert text.bytes == 34
    places = [text.within(np.array([0]), np.array([token]))[0] for token in range(8)]
    assert places == [0, 5, 10, 15, 20, 25, 30, 30]
    assert text.within(np.array([1, 0, 1]), np.array([1, 2, 2])).tolist() == [2, 10, 4]


def test_readings_of_pairs_are_those_of_the_texts_in_a_row() -> None:
    # Two pairs of 7 and 4, and of 3 and 9 bytes, a byte a token, in rows of five tokens a side.
    ids, lengths = np.zeros(23, dtype=np.uint16), np.array([1] + [0] * EOS)
    contexts = pack(PairPacking(), ids, [0, 11, 23], FixedOrder(np.array([1, 0])), EOS, 5, [7, 3])
    times = read_of((contexts, OrderedText(contexts.documents, [11, 12], lengths)), np.array([1, 2]))
    # A source has four tokens and its end, a target five or all with its end.
    first, second = [2] * 4 + [0] * 3 + [2] * 4, [1] * 3 + [1] * 5 + [0] * 4
    assert times.tolist() == [*first, *second]
