"""What every packing promises, against rows written out in lists."""

import mmap
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paribus.config.groups.ordering import BestFitPacking, ConcatenatePacking, OneDocumentPacking, PackingConfig
from paribus.errors import DataError
from paribus.ordering.packing import OrderedDocuments, PackedStream, Readahead, best_fit_decreasing
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
def test_every_token_is_predicted_once_from_the_one_before_it_in_its_document_and_first_ones_from_an_end(
    packing: PackingConfig, corpus: Corpus
) -> None:
    documents, order, length = corpus
    pairs = Counter(predictions(packed(documents, order, length, packing)))
    tokens = stream(documents, order)
    inside = Counter({pair: 1 for pair in pairwise(tokens) if pair[0][0] == pair[1][0]})
    if isinstance(packing, ConcatenatePacking):
        whole = (len(tokens) - 1) // length * length
        assert pairs == Counter(list(pairwise(tokens))[:whole])
    else:
        assert Counter({pair: n for pair, n in pairs.items() if pair[0][0] == pair[1][0]}) == inside
        others = [pair for pair in pairs if pair[0][0] != pair[1][0]]
        ends = {(-1, 0), *((at, len(documents[document])) for at, document in enumerate(order))}
        assert all(before in ends for before, _ in others)
        assert sorted(after for _, after in others) == [(at, 0) for at in range(len(order))]


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


@pytest.mark.parametrize("packing", PACKINGS[1:], ids=str)
def test_contexts_that_pad_begin_with_an_end_of_document_that_is_no_target(packing: PackingConfig) -> None:
    contexts = packed([list(range(9))], [0], 4, packing)
    inputs, targets = contexts.rows(np.arange(contexts.count))
    assert inputs.tolist() == [[EOS, 0, 1, 2], [EOS, 3, 4, 5], [EOS, 6, 7, 8]]
    assert targets.tolist() == [[0, 1, 2, 3], [-1, 4, 5, 6], [-1, 7, 8, EOS]]
    assert contexts.target_tokens(np.arange(3)).tolist() == [4, 3, 3]


@pytest.mark.parametrize("packing", PACKINGS, ids=str)
def test_a_corpus_smaller_than_one_context_is_refused_with_the_sizes(packing: PackingConfig) -> None:
    with pytest.raises(DataError, match=r"1 documents give 4 tokens.*`model.context_length` = 4 needs 5.*to 3 or less"):
        packed([[1, 2, 3]], [0], 4, packing)
    with pytest.raises(DataError, match="0 documents give 0 tokens"):
        packed([[1, 2, 3]], [], 4, packing)


def test_of_empty_documents_the_ends_are_predicted() -> None:
    for packing, expected in zip(PACKINGS, ([EOS, EOS], [EOS, EOS], [EOS, EOS], [EOS, -1]), strict=True):
        assert packed([[], [], []], packing=packing, length=2).rows([0])[1].tolist() == [expected]


def test_an_order_of_another_corpus_is_refused() -> None:
    with pytest.raises(DataError, match=r"document 1 .*documents 0 to 0"):
        OrderedDocuments(np.array([1, 2, 3]), np.array([0, 3]), np.array([0, 1]), EOS)


# Best-fit-decreasing, against bins searched one by one.


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


def test_the_rest_of_a_cut_document_is_not_predicted_from_the_document_before_it() -> None:
    contexts = packed([[1, 2], list(range(10, 15))], length=5, packing=BestFitPacking())
    inputs, targets = contexts.rows(np.arange(contexts.count))
    assert inputs.tolist() == [[EOS, 1, 2, EOS, 14], [EOS, 10, 11, 12, 13]]
    assert targets.tolist() == [[1, 2, EOS, -1, EOS], [10, 11, 12, 13, 14]]
    assert contexts.documents_of(0) == [(0, 3), (1, 2)]


# Contexts that begin where groups of documents do, against a search along the stream.


def begins(sizes: list[int], length: int) -> list[int]:
    """Where contexts begin in a stream of groups of `sizes` tokens."""
    bounds = np.cumsum([0, *sizes]).tolist()
    found, at = [], 0
    while True:
        candidates = [(begin, end) for begin, end in pairwise(bounds) if begin >= at]
        if not candidates or candidates[0][0] + length + 1 > bounds[-1]:
            return found
        begin, end = candidates[0]
        found.append(begin)
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


@pytest.mark.parametrize(
    ("sizes", "length", "expected"),
    [
        ([10, 10, 10], 4, [0, 10, 20]),
        ([2, 2, 2, 2, 2, 2], 4, [0, 4]),
        ([3, 3, 3, 3, 3], 4, [0, 6]),
        ([4, 5], 4, [0, 4]),
        ([5], 4, [0]),
    ],
)
def test_a_long_group_is_left_and_short_ones_are_joined(sizes: list[int], length: int, expected: list[int]) -> None:
    documents = [[EOS - 1 - i] * (size - 1) for i, size in enumerate(sizes)]
    contexts = packed(documents, length=length, groups=list(range(len(sizes) + 1)))
    assert begins(sizes, length) == expected
    starts = np.cumsum([0, *sizes]).tolist()
    assert [starts[held(contexts, i)[0][0]] for i in range(contexts.count)] == expected


# Documents whose tokens were drawn several times: as if the order named every draw of each, without being written.

DRAWS, DOCUMENTS = 3, 7
ORDER = np.array([5, 0, 3, 6, 1])


def drawn(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ids, offsets and lengths of sources of all draws."""
    sources, targets = random.integers(0, 6, (2, DRAWS * DOCUMENTS))
    offsets = np.concatenate([[0], np.cumsum(sources + targets)])
    return random.integers(0, EOS, offsets[-1]).astype(np.uint16), offsets, sources


def both(seed: int, length: int = 4) -> tuple[PairContexts, PairContexts]:
    """Pairs of all draws, and the same with every draw of a document named as a document of its own."""
    ids, offsets, sources = drawn(np.random.default_rng(seed))
    written = np.concatenate([ORDER + DOCUMENTS * draw for draw in range(DRAWS)])
    redrawn = OrderedDocuments(ids, offsets, ORDER, EOS, DRAWS)
    return PairContexts(redrawn, length, sources), PairContexts(
        OrderedDocuments(ids, offsets, written, EOS), length, sources
    )


@pytest.mark.parametrize("seed", range(5))
def test_pairs_of_several_draws_are_those_of_an_order_that_names_every_draw(seed: int) -> None:
    redrawn, written = both(seed)
    assert redrawn.count == written.count == DRAWS * len(ORDER)
    assert redrawn.left_out_tokens == written.left_out_tokens > 0
    assert redrawn.documents.lengths.tolist() == written.documents.lengths.tolist()
    assert redrawn.documents.lengths.sum() == written.documents.lengths.sum()
    chosen = np.random.default_rng(seed).permutation(redrawn.count)[:9]
    for one, other in zip(redrawn.rows(chosen), written.rows(chosen), strict=True):
        assert np.array_equal(one, other)
    assert redrawn.by_length(chosen).tolist() == written.by_length(chosen).tolist()
    byte_lengths = np.arange(EOS)
    assert redrawn.source_bytes(byte_lengths, chosen).tolist() == written.source_bytes(byte_lengths, chosen).tolist()
    pieces, others = redrawn.predicted(chosen), written.predicted(chosen)
    assert all(np.array_equal(vars(pieces)[name], vars(others)[name]) for name in vars(pieces))


def test_a_document_is_in_a_context_of_each_draw_and_has_the_name_that_it_has_in_the_corpus() -> None:
    redrawn, _ = both(0)
    assert [redrawn.documents_of(context)[0][0] for context in (2, 7, 12)] == [3, 3, 3]
    assert redrawn.documents.texts_at(np.arange(10)).tolist() == [*ORDER, *ORDER]


# Parts of arrays in files that are asked of the disk before they are read.

PLACE = 4096
ELEMENTS = 5 * PLACE


class Recorded:
    """A mapping that keeps what it was advised of."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int]] = []

    def madvise(self, option: int, start: int, size: int) -> None:
        assert option == mmap.MADV_WILLNEED
        assert start % mmap.PAGESIZE == 0
        self.asked.append((start, start + size))


@pytest.fixture
def ids(tmp_path: Path) -> np.ndarray:
    np.save(tmp_path / "ids.npy", np.arange(ELEMENTS, dtype=np.uint16))
    return np.load(tmp_path / "ids.npy", mmap_mode="r")  # type: ignore[no-any-return]


@pytest.mark.parametrize("first", [0, 1, 3 * PLACE + 7])
def test_what_is_asked_for_is_where_the_elements_are_in_the_file(ids: np.ndarray, first: int, tmp_path: Path) -> None:
    ahead, part = Readahead(np.asarray(ids)[first:]), ids[first:]
    ahead._mapped = recorded = Recorded()  # type: ignore[assignment]
    begins = np.array([0, PLACE - 3, 40, len(part) - 1], dtype=np.int64)
    stops = np.array([1, PLACE + 3, 40, len(part)], dtype=np.int64)
    ahead.expect(begins, stops)
    content = (tmp_path / "ids.npy").read_bytes()
    wanted = [part[begin:stop].tobytes() for begin, stop in zip(begins, stops, strict=True) if begin < stop]
    assert len(recorded.asked) == len(wanted) == 3
    for (start, stop), elements in zip(recorded.asked, wanted, strict=True):
        assert content[start:stop].endswith(elements)
        assert stop - start < len(elements) + mmap.PAGESIZE


@pytest.mark.parametrize("waits", [False, True])
def test_documents_ask_for_what_they_read_and_for_what_they_sum_unless_it_is_in_memory(
    ids: np.ndarray, waits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Readahead, "_waits_for", lambda *_: waits)
    documents = OrderedDocuments(ids, [0, 300, 300, ELEMENTS], [2, 0, 1], eos_id=9)
    documents._readahead._mapped = recorded = Recorded()  # type: ignore[assignment]
    rooms = [np.empty(4, dtype=np.int64), np.empty(3, dtype=np.int64)]
    documents.read(np.array([0, 1]), np.array([PLACE, 298]), rooms)
    assert [room.tolist() for room in rooms] == [list(range(PLACE + 300, PLACE + 304)), [298, 299, 9]]
    values = np.arange(2**16)
    assert documents.summed(values, np.array([1, 2]), np.array([0, 0]), np.array([2, 1])).tolist() == [1, 0]
    header = len(bytes(128))
    ends = [header + 2 * stop for stop in (PLACE + 304, 300, *([2] if waits else []))]
    assert [stop for _, stop in recorded.asked] == ends
