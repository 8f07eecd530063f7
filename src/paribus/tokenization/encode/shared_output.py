"""One array of ids that several threads fill: blocks of texts are handed out in turn, and placed once what is before
them is known."""

import threading
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from paribus.tokenization.encode.workspace import Ids, RefusedTextError

Offsets = npt.NDArray[np.int64]
EncodeTexts = Callable[[slice], tuple[Ids, Offsets]]
"""Ids of some of the texts and where each ends; RefusedTextError counts from the first of them."""
_SMALLEST_BLOCK, _LARGEST_BLOCK = 1 << 18, 1 << 22
_BLOCKS_A_THREAD = 8


class SharedOutput:
    """Ids of texts of these sizes in bytes, encoded block by block by any number of threads."""

    def __init__(self, sizes: Offsets, threads: int) -> None:
        total = int(sizes.sum())
        self._bounds = _block_bounds(sizes, total // (threads * _BLOCKS_A_THREAD))
        # No text has more ids than bytes. Only what is written to takes memory.
        self._ids: Ids = np.empty(total, dtype=np.int32)
        self._offsets = np.zeros(len(sizes) + 1, dtype=np.int64)
        self._lock = threading.Lock()
        self._next_block = self._next_place = self._written = 0
        self._waiting: dict[int, tuple[Ids, Offsets]] = {}
        self._refused: list[int] = []

    def work(self, encode: EncodeTexts) -> None:
        """What each thread does: encode blocks and place what can be placed, until none is left."""
        while (block := self._take()) is not None:
            texts = slice(self._bounds[block], self._bounds[block + 1])
            try:
                part = encode(texts)
            except RefusedTextError as error:
                self._refused.append(texts.start + error.index)
                return
            for begin, first, ready in self._hand_in(block, part):
                ids, ends = ready
                self._ids[begin : begin + len(ids)] = ids
                self._offsets[first + 1 : first + 1 + len(ends)] = ends + begin

    def result(self) -> tuple[Ids, Offsets]:
        """All ids and the offsets of the texts. RefusedTextError for the first text that was refused."""
        if self._refused:
            raise RefusedTextError(min(self._refused))
        return self._ids[: self._written], self._offsets

    def _take(self) -> int | None:
        with self._lock:
            if self._refused or self._next_block == len(self._bounds) - 1:
                return None
            self._next_block += 1
            return self._next_block - 1

    def _hand_in(self, block: int, part: tuple[Ids, Offsets]) -> list[tuple[int, int, tuple[Ids, Offsets]]]:
        """Parts whose place is known now: where their ids begin, their first text, and they themselves."""
        ready = []
        with self._lock:
            self._waiting[block] = part
            while self._next_place in self._waiting:
                known = self._waiting.pop(self._next_place)
                ready.append((self._written, self._bounds[self._next_place], known))
                self._written += len(known[0])
                self._next_place += 1
        return ready


def _block_bounds(sizes: Offsets, wanted: int) -> list[int]:
    """Bounds of contiguous blocks of texts, each of about as many bytes."""
    ends = np.cumsum(sizes)
    block = min(max(wanted, _SMALLEST_BLOCK), _LARGEST_BLOCK)
    goals = np.arange(block, int(ends[-1]), block)
    inner = np.unique(np.searchsorted(ends, goals, side="left") + 1)
    return [0, *inner[inner < len(sizes)].tolist(), len(sizes)]
