"""A corpus as codes that can be read several times: in memory while it is small, else in a temporary file."""

import tempfile
from collections.abc import Iterable, Iterator

import numpy as np

from paribus.tokenization.pretokenize.spans.codes import LINE_END, Codes, encode

_IN_MEMORY = 256 * 2**20
"""Bytes, four a character."""
_BATCH = 2**20
_WINDOW = 2**20


class CodeSpool:
    """The codes of `texts`, which are read once: a line end, then each text and the line end after it."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115 (closed by __exit__)
        self.size = 0
        """Number of codes."""
        self._append(np.array([LINE_END], dtype=np.uint32))
        for batch in _batches(texts):
            self._append(encode(batch))

    def __enter__(self) -> "CodeSpool":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def windows(self, after: int, size: int = _WINDOW) -> Iterator[Codes]:
        """Overlapping windows in which every code but the first of all stands once at a place from 1 to n.

        A window has n + 1 + `after` codes: one before those places and `after` behind them, line ends where there
        are none.
        """
        for start in range(1, self.size, size):
            places = min(size, self.size - start)
            self._file.seek(4 * (start - 1))
            codes = np.frombuffer(self._file.read(4 * (1 + places + after)), dtype=np.uint32)
            yield np.pad(codes, (0, 1 + places + after - len(codes)), constant_values=LINE_END)

    def _append(self, codes: Codes) -> None:
        self._file.write(codes.tobytes())
        self.size += len(codes)


def _batches(texts: Iterable[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    length = 0
    for text in texts:
        batch.append(text)
        length += len(text) + 1
        if length >= _BATCH:
            yield batch
            batch, length = [], 0
    if batch:
        yield batch
