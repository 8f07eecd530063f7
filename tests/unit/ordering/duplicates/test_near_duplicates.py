"""Of a group of near duplicates, the document that comes first in the corpus stays."""

import tempfile
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from paribus.ordering.arrays import NeighbourLists, write_neighbours
from paribus.ordering.duplicates import Groups, Pairs, embedding_pairs, equal_pairs, group
from paribus.ordering.in_context import whole_lists


def groups_of(neighbours: np.ndarray, similarities: np.ndarray, threshold: float) -> Groups:
    with tempfile.TemporaryDirectory() as directory:
        write_neighbours(Path(directory), neighbours, similarities.astype(np.float32))
        return group(len(neighbours), embedding_pairs(NeighbourLists(Path(directory)), threshold))


def test_a_chain_of_near_duplicates_is_one_group() -> None:
    # 3-1 and 1-4 are pairs, 0 and 2 are on their own, and 3 and 4 are not a pair themselves.
    neighbours = np.array([[2, 1], [3, 4], [0, -1], [1, 0], [1, 0]])
    similarities = np.array([[0.9, 0.1], [0.99, 0.96], [0.9, 0], [0.99, 0.1], [0.96, 0.1]])
    groups = groups_of(neighbours, similarities, 0.95)
    assert groups.kept.tolist() == [True, True, True, False, False]
    assert groups.first.tolist() == [0, 1, 2, 1, 1] and groups.sizes.tolist() == [3]
    assert np.allclose(groups.similarities, [0, 0.99, 0, 0.99, 0.96])


def test_a_pair_at_the_threshold_is_not_above_it() -> None:
    assert groups_of(np.array([[1], [0]]), np.array([[0.5], [0.5]]), 0.5).kept.all()


def test_padding_never_makes_a_pair() -> None:
    assert groups_of(np.full((3, 2), -1), np.ones((3, 2)), 0.5).kept.all()


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 15), st.data())
def test_the_smallest_document_of_every_group_stays(count: int, data: st.DataObject) -> None:
    cells = count * 2
    ids = data.draw(st.lists(st.integers(-1, count - 1), min_size=cells, max_size=cells))
    cosines = data.draw(st.lists(st.sampled_from([0.1, 0.99]), min_size=cells, max_size=cells))
    neighbours, similarities = np.array(ids).reshape(count, 2), np.array(cosines).reshape(count, 2)
    smallest = list(range(count))
    for _ in range(count):
        for i in range(count):
            for j, cosine in zip(neighbours[i].tolist(), similarities[i].tolist(), strict=True):
                if j >= 0 and cosine > 0.5:
                    smallest[i] = smallest[j] = min(smallest[i], smallest[j])
    groups = groups_of(neighbours, similarities, 0.5)
    assert groups.first.tolist() == smallest
    assert groups.kept.tolist() == [smallest[i] == i for i in range(count)]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=20))
def test_equal_rows_are_paired_with_the_first_of_them(rows: list[tuple[int, int]]) -> None:
    pairs = equal_pairs(np.array(rows, dtype=np.uint64))
    expected = [(rows.index(row), number) for number, row in enumerate(rows) if rows.index(row) < number]
    assert sorted(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)) == sorted(expected)
    assert pairs.similarities.tolist() == [1] * len(expected)


def test_pairs_of_no_part_are_none() -> None:
    assert len(Pairs.joined([]).first) == 0
    assert group(3, Pairs.none()).first.tolist() == [0, 1, 2]


def test_removed_documents_leave_room_for_the_next_neighbours() -> None:
    neighbours = np.array([[1, 2, 3], [0, 3, 2], [3, 1, 0], [2, 1, -1]])
    similarities = np.array([[0.99, 0.6, 0.5], [0.99, 0.5, 0.4], [0.7, 0.4, 0.3], [0.7, 0.5, 0]], dtype=np.float32)
    whole = whole_lists(neighbours, similarities, kept=np.array([True, False, True, True]), take=2)
    ids, cosines = whole.ids, whole.weights
    assert ids.tolist() == [[1, 2], [2, 0], [1, -1]]
    assert np.array_equal(cosines[ids >= 0], np.array([0.6, 0.5, 0.7, 0.3, 0.7], dtype=np.float32))
