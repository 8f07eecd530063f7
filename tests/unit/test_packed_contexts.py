"""Contexts against the concatenation written out in full."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paribus.errors import DataError
from paribus.ordering.contexts import PackedStream

EOD = 99


def packed(documents: list[list[int]], order: list[int], length: int) -> tuple[PackedStream, list[int]]:
    ids = np.array([token for document in documents for token in document], dtype=np.uint16)
    offsets = np.cumsum([0, *map(len, documents)])
    written_out = [token for document in order for token in [*documents[document], EOD]]
    return PackedStream(ids, offsets, np.array(order, dtype=np.int64), EOD, length), written_out


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_a_context_is_a_window_of_the_concatenation(data: st.DataObject) -> None:
    documents = data.draw(st.lists(st.lists(st.integers(0, 9), max_size=12), min_size=1, max_size=8))
    order = data.draw(st.lists(st.integers(0, len(documents) - 1), min_size=3, max_size=12))
    length = data.draw(st.integers(1, 7))
    tokens = sum(len(documents[document]) + 1 for document in order)
    if tokens <= length:
        return
    stream, written_out = packed(documents, order, length)
    assert stream.tokens == len(written_out)
    assert stream.count == (len(written_out) - 1) // length
    for index in range(stream.count):
        assert stream.context(index).tolist() == written_out[index * length : (index + 1) * length + 1]


def test_batches_are_rows_of_contexts_in_any_order_and_int64() -> None:
    stream, written_out = packed([[1, 2, 3], [4], [5, 6, 7, 8]], [2, 0, 1], 3)
    rows = stream.contexts([2, 0, 2])
    assert rows.dtype == np.int64
    assert rows.tolist() == [written_out[6:10], written_out[0:4], written_out[6:10]]


def test_source_bytes_count_targets_once_and_no_bytes_for_document_ends() -> None:
    documents = [[1, 2, 3], [4], [5, 6, 7, 8]]
    stream, written_out = packed(documents, [2, 0, 1], 3)
    lengths = np.arange(100) * 2
    covered = stream.source_bytes(lengths, np.arange(stream.count))
    assert covered.dtype == np.int64
    targets = [written_out[index * 3 + 1 : index * 3 + 4] for index in range(stream.count)]
    assert covered.tolist() == [sum(0 if token == EOD else 2 * token for token in context) for context in targets]


def test_an_index_outside_the_epoch_is_refused() -> None:
    stream, _ = packed([[1, 2, 3]], [0], 3)
    assert stream.count == 1
    for index in (-1, 1):
        with pytest.raises(IndexError, match="range"):
            stream.context(index)


def test_a_corpus_smaller_than_one_context_is_refused_with_the_sizes() -> None:
    with pytest.raises(DataError, match=r"1 documents give 4 tokens.*`model.context_length` = 4 needs 5.*to 3 or less"):
        packed([[1, 2, 3]], [0], 4)
    with pytest.raises(DataError, match="0 documents give 0 tokens"):
        packed([[1, 2, 3]], [], 4)


def test_an_order_of_another_corpus_is_refused() -> None:
    with pytest.raises(DataError, match=r"document 1 .*documents 0 to 0"):
        packed_order = np.array([0, 1])
        PackedStream(np.array([1, 2, 3]), np.array([0, 3]), packed_order, EOD, 2)
