"""What every packing promises, against rows written out in lists."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paribus.config.groups.ordering import BestFitPacking, ConcatenatePacking, OneDocumentPacking, PackingConfig
from paribus.errors import DataError
from paribus.ordering.packing import OrderedDocuments, PackedStream, best_fit_decreasing
from paribus.ordering.pairs import PairContexts
from support.packings import EOS, corpora, held, packed, predictions, stream, token

PACKINGS = [ConcatenatePacking(), BestFitPacking(window=None), BestFitPacking(window=3), OneDocumentPacking()]
Corpus = tuple[list[list[int]], list[int], int]


@pytest.mark.parametrize("packing", PACKINGS, ids=str)
@given(corpus=corpora())
def test_rows_are_the_tokens_of_the_pieces_and_padding(packing: PackingConfig, corpus: Corpus) -> None:
    documents, order, length = corpus
    contexts = packed(documents, order, length, packing)
    inputs, targets = contexts.rows(np.arange(contexts.count))
    assert inputs.dtype == targets.dtype == np.int64
    assert inputs.shape == targets.shape == (contexts.count, length)
    for index in range(contexts.count):
        lead = [] if contexts.full else [EOS]
        row = lead + [token(documents, order, place) for place in held(contexts, index)]
        assert 2 <= len(row) <= length + 1
        assert inputs[index].tolist() == (row + [EOS] * length)[:length]
        following = [*row[1:], *[-1] * length][:length]
        assert all(target in (after, -1) for target, after in zip(targets[index].tolist(), following, strict=True))
        assert (targets[index] >= 0).any()


@pytest.mark.parametrize("packing", PACKINGS, ids=str)
@given(corpus=corpora())
def test_every_token_is_predicted_once_from_the_one_before_it_and_first_ones_from_an_end(
    packing: PackingConfig, corpus: Corpus
) -> None:
    documents, order, length = corpus
    pairs = Counter(predictions(packed(documents, order, length, packing)))
    tokens = stream(documents, order)
    if isinstance(packing, ConcatenatePacking):
        whole = (len(tokens) - 1) // length * length
        assert pairs == Counter(list(pairwise(tokens))[:whole])
    else:
        inside = Counter({pair: 1 for pair in pairwise(tokens) if pair[0][0] == pair[1][0]})
        assert Counter({pair: n for pair, n in pairs.items() if pair[0][0] == pair[1][0]}) == inside
        across = [pair for pair in pairs if pair[0][0] != pair[1][0]]
        ends = {(-1, 0), *((at, len(documents[document])) for at, document in enumerate(order))}
        assert all(before in ends for before, _ in across)
        assert sorted(after for _, after in across) == [(at, 0) for at in range(len(order))]


@pytest.mark.parametrize("packing", PACKINGS, ids=str)
@given(corpus=corpora())
def test_targets_and_their_text_are_counted_for_each_context(packing: PackingConfig, corpus: Corpus) -> None:
    contexts = packed(*corpus, packing)
    indices = np.arange(contexts.count)[::-1].repeat(2)
    targets = contexts.rows(indices)[1]
    lengths = np.arange(EOS + 1) * 2 + 1
    counted, covered = contexts.target_tokens(indices), contexts.source_bytes(lengths, indices)
    assert counted.dtype == covered.dtype == np.int64
    assert counted.tolist() == [sum(t >= 0 for t in row) for row in targets.tolist()]
    assert covered.tolist() == [sum(0 if t in (EOS, -1) else 2 * t + 1 for t in row) for row in targets.tolist()]
    assert not contexts.full or set(counted.tolist()) == {contexts.context_length}


@pytest.mark.parametrize("packing", PACKINGS, ids=str)
@given(corpus=corpora())
def test_contexts_know_their_documents(packing: PackingConfig, corpus: Corpus) -> None:
    documents, order, length = corpus
    contexts = packed(documents, order, length, packing)
    for index in range(contexts.count):
        counts = Counter(order[position] for position, _ in held(contexts, index))
        assert contexts.documents_of(index) == list(counts.items())


def test_a_corpus_smaller_than_one_context_and_an_order_of_another_corpus_are_refused() -> None:
    message = r"1 documents give 4 tokens.*`model.context_length` = 4 needs 5.*to 3 or less"
    for packing in PACKINGS:
        with pytest.raises(DataError, match=message):
            packed([[1, 2, 3]], [0], 4, packing)
        with pytest.raises(DataError, match="0 documents give 0 tokens"):
            packed([[1, 2, 3]], [], 4, packing)
    with pytest.raises(DataError, match=r"document 1 .*documents 0 to 0"):
        OrderedDocuments(np.array([1, 2, 3]), np.array([0, 3]), np.array([0, 1]), EOS)


def test_of_empty_documents_the_ends_are_predicted() -> None:
    for packing, expected in zip(PACKINGS, ([EOS, EOS], [EOS, EOS], [EOS, EOS], [EOS, -1]), strict=True):
        assert packed([[], [], []], packing=packing, length=2).rows([0])[1].tolist() == [expected]


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


@given(st.lists(st.integers(1, 12), max_size=40), st.integers(12, 20))
def test_items_go_into_the_fullest_bin_that_takes_them(lengths: list[int], capacity: int) -> None:
    assigned = best_fit_decreasing(np.array(lengths, dtype=np.int64), capacity)
    expected = searched(lengths, capacity)
    assert assigned.tolist() == [next(b for b, items in enumerate(expected) if i in items) for i in range(len(lengths))]


@given(corpora(), st.sampled_from([None, 1, 2, 4]))
def test_best_fit_cuts_only_documents_longer_than_a_context_and_keeps_the_order_of_a_window(
    corpus: Corpus, window: int | None
) -> None:
    documents, order, length = corpus
    contexts = packed(documents, order, length, BestFitPacking(window=window))
    pieces = contexts.pieces(np.arange(contexts.count))
    for position, tokens in zip(pieces.positions.tolist(), pieces.lengths.tolist(), strict=True):
        size = len(documents[order[position]]) + 1
        assert tokens == size if size <= length else tokens in (length, (size - 2) % (length - 1) + 2)
    rows = [held(contexts, index) for index in range(contexts.count)]
    assert all(row == sorted(row) for row in rows)
    assert [row[0] for row in rows] == sorted(row[0] for row in rows)
    if window:
        assert all(len({position // window for position, _ in row}) == 1 for row in rows)


def begins(sizes: list[int], length: int) -> list[int]:
    """Where contexts begin in a stream of groups of `sizes` tokens."""
    bounds = np.cumsum([0, *sizes]).tolist()
    starts, at = [], 0
    while True:
        candidates = [(begin, end) for begin, end in pairwise(bounds) if begin >= at]
        if not candidates or candidates[0][0] + length + 1 > bounds[-1]:
            return starts
        begin, end = candidates[0]
        starts.append(begin)
        at = max(end, begin + length)


@st.composite
def grouped(draw: st.DrawFn) -> tuple[list[list[int]], list[int], int, list[int]]:
    documents = draw(st.lists(st.lists(st.integers(0, 9), max_size=6), min_size=1, max_size=6))
    order = draw(st.lists(st.integers(0, len(documents) - 1), min_size=2, max_size=20))
    inner = draw(st.sets(st.integers(1, len(order) - 1), max_size=8))
    length = draw(st.integers(1, min(9, len(stream(documents, order)) - 1)))
    return documents, order, length, [0, *sorted(inner), len(order)]


@given(grouped())
def test_every_context_begins_at_a_group_and_reads_on_until_full(
    case: tuple[list[list[int]], list[int], int, list[int]],
) -> None:
    documents, order, length, groups = case
    contexts = packed(documents, order, length, groups=groups)
    tokens = stream(documents, order)
    sizes = [len(stream(documents, order[a:b])) for a, b in pairwise(groups)]
    expected = begins(sizes, length)
    assert isinstance(contexts, PackedStream) and contexts.full
    assert [held(contexts, i) for i in range(contexts.count)] == [tokens[b : b + length + 1] for b in expected]
    assert contexts.left_out_tokens == len(tokens) - len({b + i for b in expected for i in range(length + 1)})
    inputs, targets = contexts.rows(np.arange(contexts.count))
    rows = [[token(documents, order, place) for place in tokens[b : b + length + 1]] for b in expected]
    assert np.hstack([inputs, targets[:, -1:]]).tolist() == rows
    assert np.array_equal(inputs[:, 1:], targets[:, :-1])


def test_the_rest_of_a_long_group_is_left_out_and_short_groups_are_joined() -> None:
    for sizes, length, expected in [
        ([10, 10, 10], 4, [0, 10, 20]),
        ([2, 2, 2, 2, 2, 2], 4, [0, 4]),
        ([3, 3, 3, 3, 3], 4, [0, 6]),
        ([4, 5], 4, [0, 4]),
        ([5], 4, [0]),
    ]:
        documents = [[EOS - 1 - i] * (size - 1) for i, size in enumerate(sizes)]
        contexts = packed(documents, length=length, groups=list(range(len(sizes) + 1)))
        assert begins(sizes, length) == expected
        starts = np.cumsum([0, *sizes]).tolist()
        assert [starts[held(contexts, i)[0][0]] for i in range(contexts.count)] == expected


DRAWS, DOCUMENTS = 3, 7
ORDER = np.array([5, 0, 3, 6, 1])


def drawn_pairs(seed: int, length: int = 4) -> tuple[PairContexts, PairContexts]:
    """Pairs of all draws, and the same with every draw of a document named as a document of its own."""
    random = np.random.default_rng(seed)
    sources, targets = random.integers(0, 6, (2, DRAWS * DOCUMENTS))
    offsets = np.concatenate([[0], np.cumsum(sources + targets)])
    ids = random.integers(0, EOS, offsets[-1]).astype(np.uint16)
    written = np.concatenate([ORDER + DOCUMENTS * draw for draw in range(DRAWS)])
    redrawn = OrderedDocuments(ids, offsets, ORDER, EOS, DRAWS), OrderedDocuments(ids, offsets, written, EOS)
    return PairContexts(redrawn[0], length, sources), PairContexts(redrawn[1], length, sources)


@pytest.mark.parametrize("seed", range(5))
def test_pairs_of_several_draws_are_those_of_an_order_that_names_every_draw(seed: int) -> None:
    redrawn, written = drawn_pairs(seed)
    assert redrawn.count == written.count == DRAWS * len(ORDER)
    assert redrawn.left_out_tokens == written.left_out_tokens > 0
    assert redrawn.documents.lengths.tolist() == written.documents.lengths.tolist()
    assert redrawn.documents.lengths.sum() == written.documents.lengths.sum()
    chosen, lengths = np.random.default_rng(seed).permutation(redrawn.count)[:9], np.arange(EOS)
    assert all(map(np.array_equal, redrawn.rows(chosen), written.rows(chosen)))
    assert redrawn.by_length(chosen).tolist() == written.by_length(chosen).tolist()
    assert redrawn.source_bytes(lengths, chosen).tolist() == written.source_bytes(lengths, chosen).tolist()
    pieces, expected = vars(redrawn.predicted(chosen)), vars(written.predicted(chosen))
    assert all(np.array_equal(pieces[name], expected[name]) for name in pieces)
    assert [redrawn.documents_of(context)[0][0] for context in (2, 7, 12)] == [3, 3, 3]
    assert redrawn.documents.texts_at(np.arange(10)).tolist() == [*ORDER, *ORDER]
