"""What a kernel and Python hand over: numbers and the addresses of arrays in the slots of one int64 array."""

from typing import Any

import numpy as np
import numpy.typing as npt

from paribus.tokenization.kernels.native import address

_LINE_BYTES = 64
"""A cache line; an entry of a table that is aligned to it lies in one."""

Array = npt.NDArray[Any]


class KernelState:
    """Slots that a kernel reads and writes, and the arrays they point to, kept alive and made larger on demand."""

    def __init__(self, slots: int) -> None:
        self.slots = np.zeros(slots, np.int64)
        self.arrays: dict[int, Array] = {}
        self.address = address(self.slots)

    def __getitem__(self, slot: int) -> int:
        return int(self.slots[slot])

    def __setitem__(self, slot: int, value: int) -> None:
        self.slots[slot] = value

    def hold(self, slot: int, array: Array, size: int | None = None) -> None:
        """Let `slot` point to an array and the slot `size`, if given, hold its length."""
        self.arrays[slot] = array
        self.slots[slot] = address(array)
        if size is not None:
            self.slots[size] = len(array)

    def enlarge(self, slot: int, used: int, size: int, length: int) -> None:
        """Replace an array by a longer one with the same first `used` elements."""
        old = self.arrays[slot]
        larger = np.empty((length, *old.shape[1:]), old.dtype)
        larger[:used] = old[:used]
        self.hold(slot, larger, size)


def table(bits: int, dtype: type[np.generic]) -> Array:
    """An empty table of 2^bits entries of four 8-byte words, none of them in two cache lines."""
    words = np.zeros((4 << bits) + _LINE_BYTES // 8, dtype)
    first = -address(words) % _LINE_BYTES // 8
    return words[first : first + (4 << bits)].reshape(-1, 4)
