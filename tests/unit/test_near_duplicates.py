"""Of a group of near duplicates, the document that comes first in the corpus stays."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from paribus.ordering.duplicates import first_of_duplicates
from paribus.ordering.in_context import nearest_kept


def test_a_chain_of_near_duplicates_is_one_group() -> None:
    # 3-1 and 1-4 are pairs, 0 and 2 are on their own, and 3 and 4 are not a pair themselves.
    neighbours = np.array([[2, 1], [3, 4], [0, -1], [1, 0], [1, 0]])
    similarities = np.array([[0.9, 0.1], [0.99, 0.96], [0.9, 0], [0.99, 0.1], [0.96, 0.1]], dtype=np.float32)
    assert first_of_duplicates(neighbours, similarities, threshold=0.95).tolist() == [True, True, True, False, False]


def test_a_pair_at_the_threshold_is_not_above_it() -> None:
    similarities = np.array([[0.5], [0.5]], dtype=np.float32)
    assert first_of_duplicates(np.array([[1], [0]]), similarities, threshold=0.5).all()


def test_padding_never_makes_a_pair() -> None:
    neighbours = np.full((3, 2), -1)
    assert first_of_duplicates(neighbours, np.ones((3, 2), dtype=np.float32), threshold=0.5).all()


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 15), st.data())
def test_the_smallest_document_of_every_group_stays(count: int, data: st.DataObject) -> None:
    cells = count * 2
    neighbours = np.array(
        data.draw(st.lists(st.integers(-1, count - 1), min_size=cells, max_size=cells)), dtype=np.int64
    ).reshape(count, 2)
    similarities = np.array(
        data.draw(st.lists(st.sampled_from([0.1, 0.99]), min_size=cells, max_size=cells)), dtype=np.float32
    ).reshape(count, 2)
    smallest = list(range(count))
    for _ in range(count):
        for i in range(count):
            for j, cosine in zip(neighbours[i].tolist(), similarities[i].tolist(), strict=True):
                if j >= 0 and cosine > 0.5:
                    smallest[i] = smallest[j] = min(smallest[i], smallest[j])
    kept = first_of_duplicates(neighbours, similarities, threshold=0.5)
    assert kept.tolist() == [smallest[i] == i for i in range(count)]


def test_removed_documents_leave_room_for_the_next_neighbours() -> None:
    neighbours = np.array([[1, 2, 3], [0, 3, 2], [3, 1, 0], [2, 1, -1]])
    similarities = np.array([[0.99, 0.6, 0.5], [0.99, 0.5, 0.4], [0.7, 0.4, 0.3], [0.7, 0.5, 0]], dtype=np.float32)
    ids, cosines = nearest_kept(neighbours, similarities, np.array([True, False, True, True]), 2)
    assert ids.tolist() == [[1, 2], [2, 0], [1, -1]]
    assert np.array_equal(cosines[ids >= 0], np.array([0.6, 0.5, 0.7, 0.3, 0.7], dtype=np.float32))
