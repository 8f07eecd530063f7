"""Which of some documents have a shingle, as arrays that workers map into memory.

Memory is proportional to the text of these documents. Equal shingles are told by their 64-bit hashes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from paribus.corpus.shingle_hashes import Counts, Hashes, shingle_hashes
from paribus.native.loader import address, kernel, table_zeros

Integers = npt.NDArray[np.int32]
NO_OWN = -1
SPARSE = 4
"""A table has 2^4 to 2^5 bits a key, so that one in 16 to 32 of other shingles gets past them."""


@dataclass(frozen=True)
class ShingleTable:
    """The distinct shingles of documents 0 to n - 1, and who has them."""

    bits: Hashes
    """(2^b / 4,) words, a bit for each value of the upper b + 4 bits of a hash: whether a key has it."""
    keys: Hashes
    """Hashes of the shingles, ascending."""
    buckets: npt.NDArray[np.int64]
    """(2^b + 1,): where the keys begin whose upper b bits are so."""
    starts: npt.NDArray[np.int64]
    """(keys + 1,): where the documents of each key begin in `owners`."""
    owners: Integers
    """Documents by key, ascending."""
    sizes: npt.NDArray[np.int64]
    """(n,) distinct shingles of each document."""

    @classmethod
    def of(cls, hashes: Hashes, counts: Counts) -> Self:
        """The table of documents with these hashes (`shingle_hashes`)."""
        owners = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
        order = np.lexsort((owners, hashes))
        hashes, owners = hashes[order], owners[order]
        distinct = np.append(True, (hashes[1:] != hashes[:-1]) | (owners[1:] != owners[:-1]))[: len(hashes)]
        hashes, owners = hashes[distinct], owners[distinct]
        starts = np.append(np.flatnonzero(np.append(True, hashes[1:] != hashes[:-1])[: len(hashes)]), len(hashes))
        keys = hashes[starts[:-1]]
        width = max(2, len(keys).bit_length())
        bounds = np.arange(1, 2**width, dtype=np.uint64) << np.uint64(64 - width)
        buckets = np.concatenate([[0], np.searchsorted(keys, bounds), [len(keys)]])
        sizes = np.bincount(owners, minlength=len(counts)).astype(np.int64)
        return cls(_bits(keys, width + SPARSE), keys, buckets.astype(np.int64), starts.astype(np.int64), owners, sizes)

    @property
    def shift(self) -> int:
        """64 - b."""
        return 65 - (len(self.buckets) - 1).bit_length()

    def save(self, directory: Path) -> None:
        """Write the arrays into a directory that is there."""
        for field in fields(self):
            np.save(directory / f"{field.name}.npy", getattr(self, field.name), allow_pickle=False)

    @classmethod
    def load(cls, directory: Path) -> Self:
        """The table that was saved there, memory-mapped."""
        paths = (directory / f"{field.name}.npy" for field in fields(cls))
        return cls(*(np.load(path, mmap_mode="r", allow_pickle=False) for path in paths))


def _bits(keys: Hashes, width: int) -> Hashes:
    """A bit for each value of the upper `width` bits, 64 a word, set where a key has it."""
    places = keys >> np.uint64(64 - width)
    words = np.zeros(2 ** (width - 6), np.uint64)
    np.bitwise_or.at(words, (places >> np.uint64(6)).astype(np.int64), np.uint64(1) << (places & np.uint64(63)))
    return words


class SharedShingles:
    """Counts, for each document of a table, the most of its shingles that one other document has."""

    def __init__(self, table: ShingleTable) -> None:
        self._table = table
        documents = len(table.sizes)
        self.most: Integers = np.zeros(documents, np.int32)
        """(n,) largest number of distinct shingles that a document shares with one of those that were added."""
        self._seen: Integers = table_zeros((len(table.keys) + 1,), np.int32)
        self._shared: Integers = np.zeros(documents, np.int32)
        self._touched: Integers = np.zeros(documents, np.int32)

    def add(self, documents: Sequence[Sequence[str]]) -> None:
        """Compare with some documents, each of one text or several."""
        hashes, counts = shingle_hashes(documents)
        nothing = np.zeros(1, np.int32)
        self._count(hashes, counts, NO_OWN, nothing, nothing)

    def components(self, hashes: Hashes, counts: Counts, least: Integers) -> Integers:
        """(n,) first document of each document's component, where i is joined with whoever shares least[i] or more.

        `hashes` and `counts` are those that the table was made of.
        """
        parents = np.arange(len(counts), dtype=np.int32)
        self._count(hashes, counts, 0, least, parents)
        for document, parent in enumerate(parents.tolist()):
            parents[document] = parents[parent]  # a parent is an earlier document, which has its root by now
        return parents

    def _count(self, hashes: Hashes, counts: Counts, own: int, least: Integers, parents: Integers) -> None:
        table = self._table
        found: tuple[Any, ...] = (self._seen, self._shared, self._touched, self.most)
        kernel("count_shared")(
            address(hashes), address(counts), len(counts), address(table.bits), table.shift - SPARSE,
            address(table.keys), address(table.buckets), table.shift, address(table.starts), address(table.owners),
            *map(address, found), own, address(least), address(parents),
        )  # fmt: skip
