"""Neighbours found so far, a file a block of documents, so that an interrupted search goes on where it was."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from paribus.ordering.neighbours.ranking import Neighbours, merge

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
        """Shards that are merged into a block already."""
        path = self._path(block)
        if not path.exists():
            return 0
        with np.load(path, allow_pickle=False) as saved:
            return int(saved["shards"])

    def read(self, block: int) -> Neighbours:
        """The block's neighbours so far."""
        first, last = self.bounds(block)
        path = self._path(block)
        if not path.exists():
            shape = (last - first, self.width)
            return np.full(shape, -1, dtype=np.int64), np.zeros(shape, dtype=np.float32)
        with np.load(path, allow_pickle=False) as saved:
            return saved["ids"], saved["similarities"]

    def add(self, block: int, shard: int, found: Neighbours) -> None:
        """Merge what shard number `shard`, the next one, has for the block."""
        ids, similarities = merge(self.read(block), found, self.width)
        aside = self._path(block).with_suffix(".partial")
        with aside.open("wb") as file:
            np.savez(file, ids=ids, similarities=similarities, shards=np.int64(shard + 1))
        aside.replace(self._path(block))

    def _path(self, block: int) -> Path:
        return self.work / f"block_{block:08d}.npz"
