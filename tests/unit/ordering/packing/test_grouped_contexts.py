"""Contexts that begin where groups of documents do, against a search along the stream."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paribus.ordering.packing import GroupedStream
from support.packings import EOS, held, packed, stream, token


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


@settings(max_examples=300, deadline=None)
@given(grouped())
def test_every_context_begins_at_a_group_and_reads_on_until_full(
    case: tuple[list[list[int]], list[int], int, list[int]],
) -> None:
    documents, order, length, groups = case
    contexts = packed(documents, order, length, groups=groups)
    tokens = stream(documents, order)
    sizes = [len(stream(documents, order[a:b])) for a, b in pairwise(groups)]
    expected = begins(sizes, length)
    assert isinstance(contexts, GroupedStream) and contexts.full
    assert [held(contexts, i) for i in range(contexts.count)] == [tokens[b : b + length + 1] for b in expected]
    assert contexts.left_out_tokens == len(tokens) - len({b + i for b in expected for i in range(length + 1)})
    for document in range(len(documents)):
        holding = [i for i in range(contexts.count) if document in dict(contexts.documents_of(i))]
        assert contexts.contexts_of(document).tolist() == holding
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
