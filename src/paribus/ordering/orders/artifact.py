"""The order artefact: which document is read after which.

`order.npy` holds document indices in the order in which they are read, `groups.npy`, where there is one, the positions
at which a document followed by its neighbours begins, and `order.json` what both must agree with. Every kept document
is in the order once; only an order with groups may repeat documents.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from paribus.errors import DataError
from paribus.ordering.arrays import map_array

DOCUMENTS, GROUPS, SUMMARY = "order.npy", "groups.npy", "order.json"
COUNTS = ("documents", "kept", "entries", "repeats")
HASHED_ENTRIES = 2**20

Indices = npt.NDArray[np.int64]


def write_order(
    directory: Path, documents: Indices, *, groups: Indices | None = None, kept: int, removed: int
) -> dict[str, Any]:
    """Write an order into `directory` and return what `order.json` says.

    `documents` is (m,) int64, document indices in the order they are read; `groups` is (g + 1,) int64, positions in
    `documents` at which a group begins, from 0 to m. Of the corpus `kept` documents are in the order and `removed`
    are not.
    """
    np.save(directory / DOCUMENTS, documents.astype(np.int64, copy=False), allow_pickle=False)
    if groups is not None:
        np.save(directory / GROUPS, groups.astype(np.int64, copy=False), allow_pickle=False)
    counts = (kept + removed, kept, len(documents), len(documents) - kept)
    summary = dict(zip(COUNTS, counts, strict=True)) | {"digest": order_digest(documents)}
    (directory / SUMMARY).write_text(json.dumps(summary, indent=1), encoding="utf-8")
    return summary


def order_digest(documents: Indices) -> str:
    """SHA-256 of document indices as little-endian int64."""
    digest = hashlib.sha256()
    for start in range(0, len(documents), HASHED_ENTRIES):
        digest.update(documents[start : start + HASHED_ENTRIES].astype("<i8").tobytes())
    return digest.hexdigest()


class Order:
    """The order in directory `path`, checked against itself in O(m); DataError names the file that is wrong."""

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        summary = self._summary()
        self.digest: str = summary["digest"]
        self.corpus_documents: int = summary["documents"]
        """Documents of the corpus, those that are not in the order included."""
        self.kept: int = summary["kept"]
        """Distinct documents in the order."""
        self.documents: Indices = self._map(DOCUMENTS)
        """(m,) int64 document indices in the order they are read, memory-mapped."""
        self.groups: Indices | None = self._map(GROUPS) if (self.path / GROUPS).exists() else None
        """None, or (g + 1,) int64 positions in `documents` at which a group begins, ending with m."""
        self._check_documents(summary)
        self._check_groups()

    def __len__(self) -> int:
        return len(self.documents)

    def _summary(self) -> dict[str, Any]:
        file = self.path / SUMMARY
        try:
            summary = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise DataError(f"{file}: no readable description of an order ({error})") from error
        if not isinstance(summary, dict) or not isinstance(summary.get("digest"), str):
            raise DataError(f"{file}: has no digest of the order")
        missing = [name for name in COUNTS if not isinstance(summary.get(name), int)]
        if missing:
            raise DataError(f"{file}: has no whole number for {', '.join(missing)}")
        return summary

    def _map(self, name: str) -> Indices:
        file = self.path / name
        try:
            array: Indices = map_array(file)
        except (OSError, ValueError) as error:
            raise DataError(f"{file}: no readable array of positions ({error})") from error
        if array.ndim != 1 or array.dtype != np.int64:
            raise DataError(f"{file}: is {array.dtype} {array.shape}, not one row of int64")
        return array

    def _check_documents(self, summary: dict[str, Any]) -> None:
        file, entries = self.path / DOCUMENTS, len(self.documents)
        if entries != summary["entries"]:
            raise DataError(f"{file}: has {entries} entries, but {SUMMARY} says {summary['entries']}")
        if entries and (self.documents.min() < 0 or self.documents.max() >= self.corpus_documents):
            low, high = int(self.documents.min()), int(self.documents.max())
            raise DataError(f"{file}: has documents {low} to {high}, but the corpus has {self.corpus_documents}")
        self._check_repeats(file)
        if order_digest(self.documents) != self.digest:
            raise DataError(f"{file}: its digest is not the {self.digest[:16]}… that {SUMMARY} says")

    def _check_repeats(self, file: Path) -> None:
        seen = np.zeros(self.corpus_documents, dtype=bool)
        seen[self.documents] = True
        distinct = int(np.count_nonzero(seen))
        if distinct != self.kept:
            raise DataError(f"{file}: has {distinct} distinct documents, but {SUMMARY} says that {self.kept} are kept")
        if self.groups is None and len(self.documents) != distinct:
            raise DataError(f"{file}: {len(self.documents) - distinct} entries repeat a document, without {GROUPS}")

    def _check_groups(self) -> None:
        if self.groups is None:
            return
        ends = (0, len(self.documents))
        wrong = not len(self.groups) or (int(self.groups[0]), int(self.groups[-1])) != ends
        if wrong or (np.diff(self.groups) <= 0).any():
            raise DataError(f"{self.path / GROUPS}: must ascend from 0 to the {ends[1]} entries of {DOCUMENTS}")
