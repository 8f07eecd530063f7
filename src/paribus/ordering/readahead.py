"""Parts of a memory-mapped array that are read soon, asked of the disk at once.

Read one by one, each part that is not in memory is waited for: some milliseconds, of which a batch of documents in
random order has thousands.
"""

import mmap
import resource
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
SAMPLED = 16
"""Parts that are looked at, at most."""


class Readahead:
    """What of a one-dimensional array is to be read from its file; nothing of one that is in memory."""

    def __init__(self, array: npt.NDArray[Any]) -> None:
        self._array = array
        self._mapped = _mapped(array) if hasattr(mmap, "MADV_WILLNEED") and array.flags.c_contiguous else None
        self._size = array.itemsize
        self._offset = 0
        """Bytes of the mapping before the array."""
        if self._mapped is not None:
            self._offset = _address(array) - _address(np.frombuffer(self._mapped, dtype=np.uint8))

    def expect(self, begins: Integers, stops: Integers) -> None:
        """Begin to read elements `begins[i]` to `stops[i]`, both (n,), and do not wait for them."""
        if self._mapped is None:
            return
        first = (self._offset + begins * self._size) // mmap.PAGESIZE * mmap.PAGESIZE
        sizes = self._offset + stops * self._size - first
        wanted = stops > begins
        # What is not read ahead is read when it is needed: errors of a disk, and places that are none, are told there.
        with suppress(OSError, ValueError):
            for start, size in zip(first[wanted].tolist(), sizes[wanted].tolist(), strict=True):
                self._mapped.madvise(mmap.MADV_WILLNEED, start, size)

    def expect_absent(self, begins: Integers, stops: Integers) -> None:
        """As `expect`, unless all of a sample are in memory: to ask for what is there costs half of reading it."""
        if self._mapped is None or not len(begins):
            return
        sample = begins[stops > begins]
        if self._waits_for(sample[:: max(1, -(-len(sample) // SAMPLED))]):
            self.expect(begins, stops)

    def _waits_for(self, elements: Integers) -> bool:
        """Whether a disk is waited for when they are read."""
        before = _waits()
        np.asarray(self._array)[elements]
        return _waits() > before


def _waits() -> int:
    """How often this thread, or where that is not known its process, waited for parts of files."""
    return resource.getrusage(getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF)).ru_majflt


def _mapped(array: Any) -> mmap.mmap | None:
    """The mapping that an array is a view of."""
    while isinstance(array, np.ndarray):
        array = array.base
    return array if isinstance(array, mmap.mmap) else None


def _address(array: npt.NDArray[Any]) -> int:
    return int(array.__array_interface__["data"][0])
