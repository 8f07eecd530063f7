"""What every packing promises, against rows written out in lists."""

from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from paribus.config.groups.packing import BestFitPacking, ConcatenatePacking, OneDocumentPacking, PackingConfig
from paribus.errors import DataError
from paribus.ordering.packing.documents import OrderedDocuments
from paribus.ordering.packing.pack import pack
from support.packings import EOS, FixedOrder, corpora, held, packed, predictions, stream, token

PACKINGS = [ConcatenatePacking(), BestFitPacking(window=None), BestFitPacking(window=3), OneDocumentPacking()]
Corpus = tuple[list[list[int]], list[int], int]


@pytest.mark.parametrize("packing", PACKINGS, ids=str)
@settings(max_examples=100, deadline=None)
@given(corpus=corpora())
def test_rows_are_the_tokens_of_the_pieces_and_padding(packing: PackingConfig, corpus: Corpus) -> None:
    documents, order, length = corpus
    contexts = packed(documents, order, length, packing)
    inputs, targets = contexts.rows(np.arange(contexts.count))
    assert inputs.dtype == targets.dtype == np.int64
    assert inputs.shape == targets.shape == (contexts.count, length)
    for index in range(contexts.count):
        row = [token(documents, order, place) for place in held(contexts, index)]
        assert 2 <= len(row) <= length + 1
        assert inputs[index].tolist() == (row + [EOS] * length)[:length]
        following = [*row[1:], *[-1] * length][:length]
        assert all(target in (after, -1) for target, after in zip(targets[index].tolist(), following, strict=True))
        assert (targets[index] >= 0).any()


@pytest.mark.parametrize("packing", PACKINGS, ids=str)
@settings(max_examples=100, deadline=None)
@given(corpus=corpora())
def test_every_token_of_a_document_but_its_first_is_predicted_once_from_the_one_before(
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
        assert all(before[1] == len(documents[order[before[0]]]) and after[1] == 0 for before, after in others)


@pytest.mark.parametrize("packing", PACKINGS, ids=str)
@settings(max_examples=50, deadline=None)
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
@settings(max_examples=50, deadline=None)
@given(corpus=corpora())
def test_documents_know_their_contexts_and_contexts_their_documents(packing: PackingConfig, corpus: Corpus) -> None:
    documents, order, length = corpus
    contexts = packed(documents, order, length, packing)
    for index in range(contexts.count):
        counts = Counter(order[position] for position, _ in held(contexts, index))
        assert contexts.documents_of(index) == list(counts.items())
    for document in range(len(documents)):
        holding = [i for i in range(contexts.count) if document in dict(contexts.documents_of(i))]
        assert contexts.contexts_of(document).tolist() == holding


def test_a_document_the_order_leaves_out_has_no_contexts() -> None:
    for packing in PACKINGS:
        contexts = packed([[1, 2, 3], [4], [5, 6, 7, 8]], [2, 0], 3, packing)
        assert contexts.contexts_of(1).tolist() == []
        assert contexts.contexts_of(0).tolist() != []


@pytest.mark.parametrize("packing", PACKINGS, ids=str)
def test_an_index_outside_the_epoch_is_refused(packing: PackingConfig) -> None:
    contexts = packed([[1, 2, 3]], [0], 3, packing)
    assert contexts.count == 1
    for index in (-1, 1):
        with pytest.raises(IndexError, match="range"):
            contexts.rows([index])


@pytest.mark.parametrize("packing", PACKINGS, ids=str)
def test_a_corpus_of_exactly_one_context_is_one_context(packing: PackingConfig) -> None:
    contexts = packed([[1, 2, 3]], [0], 3, packing)
    inputs, targets = contexts.rows([0])
    assert (inputs.tolist(), targets.tolist()) == ([[1, 2, 3]], [[2, 3, EOS]])


@pytest.mark.parametrize("packing", PACKINGS, ids=str)
def test_a_document_of_many_contexts_is_read_from_end_to_end(packing: PackingConfig) -> None:
    contexts = packed([list(range(23))], [0], 4, packing)
    inputs, targets = contexts.rows(np.arange(contexts.count))
    following = [*range(1, 23), EOS, -1]
    assert contexts.count == (5 if isinstance(packing, ConcatenatePacking) else 6)
    assert inputs.flatten().tolist() == [*range(23), EOS][: inputs.size]
    assert targets.flatten().tolist() == following[: targets.size]


@pytest.mark.parametrize("packing", PACKINGS, ids=str)
def test_a_corpus_smaller_than_one_context_is_refused_with_the_sizes(packing: PackingConfig) -> None:
    with pytest.raises(DataError, match=r"1 documents give 4 tokens.*`model.context_length` = 4 needs 5.*to 3 or less"):
        packed([[1, 2, 3]], [0], 4, packing)
    with pytest.raises(DataError, match="0 documents give 0 tokens"):
        packed([[1, 2, 3]], [], 4, packing)


def test_empty_documents_alone_have_nothing_to_predict() -> None:
    with pytest.raises(DataError, match=r"packing\.kind=one_document.*documents with text"):
        packed([[], [], []], packing=OneDocumentPacking(), length=2)
    assert packed([[], [], []], packing=ConcatenatePacking(), length=2).rows([0])[1].tolist() == [[EOS, EOS]]
    assert packed([[], [], []], packing=BestFitPacking(), length=2).rows([0])[1].tolist() == [[EOS, EOS]]


def test_an_order_of_another_corpus_is_refused() -> None:
    with pytest.raises(DataError, match=r"document 1 .*documents 0 to 0"):
        OrderedDocuments(np.array([1, 2, 3]), np.array([0, 3]), np.array([0, 1]), EOS)


def test_tokens_may_lie_in_a_file(tmp_path: Path) -> None:
    ids = np.arange(40, dtype=np.uint16)
    np.save(tmp_path / "ids.npy", ids)
    mapped = np.load(tmp_path / "ids.npy", mmap_mode="r")
    order, offsets = FixedOrder(np.array([1, 0])), np.array([0, 30, 40])
    for packing in PACKINGS:
        from_memory, from_file = (pack(packing, tokens, offsets, order, EOS, 8) for tokens in (ids, mapped))
        indices = np.arange(from_memory.count)
        assert all(map(np.array_equal, from_memory.rows(indices), from_file.rows(indices)))
