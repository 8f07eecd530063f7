"""Parts of arrays in files that are asked of the disk before they are read."""

import mmap
from pathlib import Path

import numpy as np
import pytest

from paribus.ordering.packing import OrderedDocuments, Readahead

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
