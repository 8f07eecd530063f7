"""What a kernel and Python hand over: numbers and the addresses of arrays in the slots of one int64 array."""

from typing import Any

import numpy as np
import numpy.typing as npt

from paribus.native.loader import address

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
