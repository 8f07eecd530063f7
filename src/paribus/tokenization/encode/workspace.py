"""What one thread works with while encoding: scratch arrays, and the pre-tokens that it remembers."""

from typing import Any

import numpy as np
import numpy.typing as npt

from paribus.native.loader import address, kernel, table_zeros
from paribus.tokenization.encode.key_masks import key_masks
from paribus.tokenization.encode.text_address import text_address
from paribus.tokenization.kernels import layout

Ids = npt.NDArray[np.int32]
_SMALLEST, _LARGEST_SHORT, _LARGEST_LONG = 12, 22, 18
"""Binary logarithm of the slots of a table: at first, and of short and longer pre-tokens at last.

When they are full, nothing more is remembered. The largest take 128 MiB and 8 MiB, and the bytes of the longer
pre-tokens at most 40 MiB, for each thread.
"""
_ROOM = 64
_UNIT_WORDS = 8


class RefusedTextError(Exception):
    """A character that is not in the alphabet and may not be replaced, in the text `index` of a call."""

    def __init__(self, index: int) -> None:
        super().__init__(f"text {index} has a character outside the alphabet")
        self.index = index


class Workspace:
    """The memo and scratch memory of one thread for one tokenizer. It only ever speeds up; ids never depend on it."""

    def __init__(self, model: npt.NDArray[np.int64]) -> None:
        self._model = model
        self._slots = np.zeros(layout.MEMO_SLOTS, dtype=np.int64)
        self._arrays: dict[int, npt.NDArray[Any]] = {}
        self._model_address, self._slots_address = address(model), address(self._slots)
        self._encode = kernel("encode_documents")
        for slots in _TABLES:
            self._new_table(*slots, _SMALLEST)
        self._hold(layout.BYTES, np.empty(1 << 16, dtype=np.uint8), layout.BYTES_SIZE)
        self._hold(layout.IDS, np.empty(1 << 14, dtype=np.int32), layout.IDS_SIZE)
        self._hold(layout.SCRATCH, np.empty(64, dtype=np.uint8))
        self._hold(layout.POSITIONS, np.empty(layout.CHUNK + 130, dtype=np.int64))
        self._hold(layout.KEYS, np.empty(3 * (layout.CHUNK + 130), dtype=np.uint64))
        self._hold(layout.TAIL, np.zeros(32, dtype=np.uint8))
        self._hold(layout.KEY_MASKS, key_masks())
        self._one = np.zeros(3, dtype=np.int64)
        self._one_address = address(self._one)
        self._longest = -1
        self._make_room(1024)

    def encode(
        self, addresses: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]
    ) -> tuple[Ids, npt.NDArray[np.int64]]:
        """Ids of n texts, flat, and where each ends (n,).

        Raises RefusedTextError for a character that is not in the alphabet and may not be replaced.
        """
        total = int(sizes.sum())
        ends = np.empty(len(sizes), dtype=np.int64)
        self._make_room(int(sizes.max(initial=0)))
        output = np.empty(total // 3 + self._longest + _ROOM, dtype=np.int32)
        arguments = (address(addresses), address(sizes), len(sizes), self._model_address, self._slots_address)
        self._slots[layout.NEXT] = self._slots[layout.WRITTEN] = 0
        while True:
            self._slots[layout.OUTPUT_SIZE] = len(output)
            status = self._encode(*arguments, address(output), address(ends))
            written = int(self._slots[layout.WRITTEN])
            if status == layout.DONE:
                return output[:written], ends
            if status == layout.GROW_OUTPUT:
                output = _grown(output, written, max(2 * len(output), written + self._longest + _ROOM))
            else:
                self._grow(status)

    def encode_one(self, text: str) -> Ids:
        """Ids of one text; the same as `encode`, with little work around it."""
        slots, place, one = self._slots, self._one_address, self._one
        one[0], one[1] = found = text_address(text)
        self._make_room(found[1])
        while True:
            slots[layout.NEXT] = slots[layout.WRITTEN] = 0
            slots[layout.OUTPUT_SIZE] = len(self._line)
            status = self._encode(
                place, place + 8, 1, self._model_address, self._slots_address, self._line_address, place + 16
            )
            if status == layout.DONE:
                return self._line[: one[2]].copy()
            self._grow(status)

    def _hold(self, slot: int, array: npt.NDArray[Any], size: int | None = None) -> None:
        self._arrays[slot] = array
        self._slots[slot] = address(array)
        if size is not None:
            self._slots[size] = len(array)

    def _make_room(self, longest: int) -> None:
        """Scratch for a text of that many bytes."""
        if longest <= self._longest:
            return
        self._longest = longest = max(longest, 2 * self._longest)
        stride = (longest >> 6) + 2
        self._slots[layout.STRIDE] = stride
        self._hold(layout.MASKS, np.empty(6 * stride, dtype=np.uint64))
        self._hold(layout.STARTS, np.empty(stride, dtype=np.uint64))
        self._hold(layout.UNITS, np.empty(longest + _ROOM, dtype=np.int32))
        self._hold(layout.RESULT, np.empty(longest + _ROOM, dtype=np.int32))
        self._line: Ids = np.empty(longest + _ROOM, dtype=np.int32)
        self._line_address = address(self._line)
        self._hold(layout.WORK, np.empty(_UNIT_WORDS * (longest + _ROOM), dtype=np.int64))

    def _grow(self, status: int) -> None:
        if status == layout.REFUSED:
            raise RefusedTextError(int(self._slots[layout.NEXT]))
        if status == layout.GROW_BYTES:
            self._hold(layout.BYTES, _doubled(self._arrays[layout.BYTES]), layout.BYTES_SIZE)
        elif status == layout.GROW_IDS:
            self._hold(layout.IDS, _doubled(self._arrays[layout.IDS]), layout.IDS_SIZE)
        else:
            self._grow_table(status == layout.GROW_LONG)

    def _new_table(self, slot: int, shift: int, free: int, bits: int) -> None:
        self._hold(slot, table_zeros((1 << bits, 4), np.uint64))
        self._slots[shift], self._slots[free] = 64 - bits, 5 << (bits - 3)

    def _grow_table(self, longer: bool) -> None:
        slot, shift, free = _TABLES[longer]
        old, bits = self._arrays[slot], 64 - int(self._slots[shift])
        if bits >= (_LARGEST_LONG if longer else _LARGEST_SHORT):
            self._slots[free] = -1
            return
        self._new_table(slot, shift, free, bits + 1)
        table = int(self._slots[slot]), int(self._slots[shift])
        self._slots[free] -= kernel("grow_table")(address(old), len(old), *table, longer)


_TABLES = (layout.SHORT, layout.SHORT_SHIFT, layout.SHORT_FREE), (layout.LONG, layout.LONG_SHIFT, layout.LONG_FREE)


def _doubled(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return _grown(array, len(array), 2 * len(array))


def _grown(array: npt.NDArray[Any], used: int, size: int) -> npt.NDArray[Any]:
    larger = np.empty(size, dtype=array.dtype)
    larger[:used] = array[:used]
    return larger
