"""Neighbours found so far, a file a block of documents, so that an interrupted search goes on where it was."""

import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from paribus.errors import DataError
from paribus.ordering.neighbours.ranking import Neighbours, merge
from paribus.store import files
from paribus.store.claims import exclusive

DOCUMENTS_A_BLOCK = 2048


@dataclass(frozen=True)
class Blocks:
    """The blocks of `documents` documents in directory `work`."""

    work: Path
    documents: int
    width: int
    """Neighbours kept a document."""

    @property
    def count(self) -> int:
        """Number of blocks."""
        return -(-self.documents // DOCUMENTS_A_BLOCK)

    def bounds(self, block: int) -> tuple[int, int]:
        """First document of a block, and the one behind its last."""
        first = block * DOCUMENTS_A_BLOCK
        return first, min(first + DOCUMENTS_A_BLOCK, self.documents)

    def searched(self, block: int) -> int:
        """Shards that are merged into a block already; none where its file is cut short."""
        try:
            return int(self._saved(block, "shards")[0])
        except (FileNotFoundError, DataError):
            return 0

    def are_searched(self, shards: int) -> bool:
        """Whether so many shards are merged into every block."""
        return all(self.searched(block) >= shards for block in range(self.count))

    def read(self, block: int) -> Neighbours:
        """The block's neighbours so far; DataError where its file cannot be read."""
        try:
            ids, similarities = self._saved(block, "ids", "similarities")
            return ids, similarities
        except FileNotFoundError:
            return self._nothing(block)

    def add(self, block: int, shard: int, found: Neighbours) -> None:
        """Merge what shard number `shard` has for the block; nothing if it is in there already.

        Another process may search the same shards: what is merged is read in one step, and is replaced only where it
        is still what was read.
        """
        searched = self.searched(block)
        if searched > shard:
            return
        if searched < shard:
            raise DataError(f"{self._path(block)}: has {searched} shards, not {shard}; run the command again")
        before = self._merged(block, shard) if shard else self._nothing(block)
        if before is None:
            return
        ids, similarities = merge(before, found, self.width)
        with exclusive(self.work):
            if self.searched(block) == shard:
                with files.replacing(self._path(block)) as aside, aside.open("wb") as file:
                    np.savez(file, ids=ids, similarities=similarities, shards=np.int64(shard + 1))

    def _merged(self, block: int, shards: int) -> Neighbours | None:
        """The block's neighbours in exactly so many shards; None where another process has merged more."""
        merged, ids, similarities = self._saved(block, "shards", "ids", "similarities")
        return (ids, similarities) if merged == shards else None

    def _saved(self, block: int, *names: str) -> list[npt.NDArray[Any]]:
        path = self._path(block)
        try:
            with np.load(path, allow_pickle=False) as saved:
                return [saved[name] for name in names]
        except (EOFError, ValueError, KeyError, zipfile.BadZipFile) as error:
            raise DataError(f"{path}: no readable neighbours ({error}); remove it and run the command again") from error

    def _nothing(self, block: int) -> Neighbours:
        first, last = self.bounds(block)
        shape = (last - first, self.width)
        return np.full(shape, -1, dtype=np.int64), np.zeros(shape, dtype=np.float32)

    def _path(self, block: int) -> Path:
        first, last = self.bounds(block)
        return self.work / f"block_{first:09d}_{last:09d}.npz"
