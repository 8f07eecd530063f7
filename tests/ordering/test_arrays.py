"""Arrays in files of the ordering stages."""

from pathlib import Path

import numpy as np
import pytest

from paribus.errors import DataError
from paribus.ordering.arrays import NeighbourLists, create_array, write_neighbours
from paribus.ordering.in_context import whole_lists

IDS = np.array([[1, 2], [2, 0], [0, 1]], dtype=np.int32)


@pytest.mark.parametrize("file", ["neighbours.npy", "similarities.npy"])
@pytest.mark.parametrize("left", [0, 90, -1])
def test_lists_cut_short_are_refused_by_name(tmp_path: Path, file: str, left: int) -> None:
    write_neighbours(tmp_path, IDS, np.ones((3, 2), dtype=np.float32))
    assert NeighbourLists(tmp_path).count == 3
    path = tmp_path / file
    path.write_bytes(path.read_bytes()[:left])
    with pytest.raises(DataError, match=rf"{file}: no readable array"):
        NeighbourLists(tmp_path)


def test_an_array_is_made_of_zeros_and_keeps_what_is_written(tmp_path: Path) -> None:
    array = create_array(tmp_path / "a.npy", np.float32, (3, 2))
    assert array.shape == (3, 2) and not array.any()
    array[1] = 7
    del array
    assert np.load(tmp_path / "a.npy").tolist() == [[0, 0], [7, 7], [0, 0]]
    assert create_array(tmp_path / "none.npy", np.int64, (0, 4)).shape == (0, 4)


def test_whole_lists_leave_nothing_behind(tmp_path: Path) -> None:
    kept = np.array([True, False, True])
    lists = whole_lists(IDS, np.ones((3, 2), dtype=np.float32), kept=kept, take=1, work=tmp_path)
    assert lists.ids.tolist() == [[1], [0]]
    assert not list(tmp_path.iterdir())
