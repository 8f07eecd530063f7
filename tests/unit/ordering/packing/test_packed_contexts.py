"""What every packing promises, against rows written out in lists."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings

from paribus.config.groups.ordering import BestFitPacking, ConcatenatePacking, OneDocumentPacking, PackingConfig
from paribus.errors import DataError
from paribus.ordering.packing import OrderedDocuments
from support.packings import EOS, corpora, held, packed, predictions, stream, token

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
        lead = [] if contexts.full else [EOS]
        row = lead + [token(documents, order, place) for place in held(contexts, index)]
        assert 2 <= len(row) <= length + 1
        assert inputs[index].tolist() == (row + [EOS] * length)[:length]
        following = [*row[1:], *[-1] * length][:length]
        assert all(target in (after, -1) for target, after in zip(targets[index].tolist(), following, strict=True))
        assert (targets[index] >= 0).any()


@pytest.mark.parametrize("packing", PACKINGS, ids=str)
@settings(max_examples=100, deadline=None)
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
