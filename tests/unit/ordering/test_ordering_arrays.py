"""Arrays in files of the ordering stages: cut short, emptied, and without room on the disk."""

import errno
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from paribus.errors import DataError
from paribus.ordering.arrays import create_array
from paribus.ordering.embed.artifact import Embeddings
from paribus.ordering.neighbours.lists import NeighbourLists, create_lists, write_neighbours
from paribus.ordering.neighbours.whole import whole_lists
from paribus.ordering.orders.artifact import Order, write_order
from support.orders import formula_vectors, write_embeddings

IDS = np.array([[1, 2], [2, 0], [0, 1]], dtype=np.int32)


def embeddings(directory: Path) -> Callable[[], object]:
    write_embeddings(directory, formula_vectors(20))
    return lambda: Embeddings(directory)


def neighbours(directory: Path) -> Callable[[], object]:
    write_neighbours(directory, IDS, np.ones((3, 2), dtype=np.float32))
    return lambda: NeighbourLists(directory)


def order(directory: Path) -> Callable[[], object]:
    write_order(directory, np.arange(4), groups=np.array([0, 2, 4]), kept=4, removed=0)
    return lambda: Order(directory)


@pytest.mark.parametrize(
    ("write", "file"),
    [
        (embeddings, "00000.npy"),
        (neighbours, "neighbours.npy"),
        (neighbours, "similarities.npy"),
        (order, "order.npy"),
        (order, "groups.npy"),
    ],
)
@pytest.mark.parametrize("left", [0, 5, 90, -1])
def test_an_array_cut_short_is_refused_by_name(
    tmp_path: Path, write: Callable[[Path], Callable[[], object]], file: str, left: int
) -> None:
    read = write(tmp_path)
    read()
    path = tmp_path / file
    path.write_bytes(path.read_bytes()[:left])
    with pytest.raises(DataError, match=rf"{file}: no readable array"):
        read()


def test_an_array_is_made_of_zeros_and_keeps_what_is_written(tmp_path: Path) -> None:
    array = create_array(tmp_path / "a.npy", np.float32, (3, 2))
    assert array.shape == (3, 2) and not array.any()
    array[1] = 7
    del array
    assert np.load(tmp_path / "a.npy").tolist() == [[0, 0], [7, 7], [0, 0]]
    assert create_array(tmp_path / "none.npy", np.int64, (0, 4)).shape == (0, 4)


def test_lists_without_room_on_the_disk_are_an_error_before_they_are_filled(small_disk: Path) -> None:
    with pytest.raises(OSError, match=r"neighbours\.npy") as full:
        create_lists(small_disk, 100_000, 20)
    assert full.value.errno == errno.ENOSPC


def test_whole_lists_leave_nothing_behind(tmp_path: Path) -> None:
    kept = np.array([True, False, True])
    lists = whole_lists(IDS, np.ones((3, 2), dtype=np.float32), kept=kept, take=1, work=tmp_path)
    assert lists.ids.tolist() == [[1], [0]]
    assert not list(tmp_path.iterdir())
