"""The embeddings artefact: one unit vector a document, one float16 array for each Parquet shard of the training split.

`embeddings.json` says how many rows each array has and how long they are, so that a lost or cut file is noticed.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from paribus.errors import DataError
from paribus.ordering.arrays import FileRows, map_array
from paribus.ordering.embed.unit import unit_rows
from paribus.store import files

Vectors = npt.NDArray[np.float32]
MANIFEST = "embeddings.json"
_ROWS_AT_ONCE = 8192
"""Vectors scaled together: that is done in double precision, and shards are large."""


class Embeddings:
    """Reads the embeddings in directory `path`, in corpus order.

    Rows have unit length, or are zeros (a document that is like no other); their directions are those of float16.
    Raises DataError, naming the file, where an array is missing, cut short or of another type or length.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        lengths, self.dimensions = _read_manifest(self.path / MANIFEST)
        self.shards = [self.path / f"{number:05d}.npy" for number in range(len(lengths))]
        for shard, rows in zip(self.shards, lengths, strict=True):
            _check(shard, (rows, self.dimensions))
        self._rows = FileRows(self.shards, lengths)

    @property
    def offsets(self) -> npt.NDArray[np.int64]:
        """(shards + 1,) index of the first document of each shard, ending with their number."""
        return self._rows.offsets

    @property
    def count(self) -> int:
        """Number of documents."""
        return len(self._rows)

    def __len__(self) -> int:
        return self.count

    def rows(self, start: int, stop: int) -> npt.NDArray[np.float32]:
        """Vectors of the documents from `start` up to `stop`, (stop - start, dimensions)."""
        vectors = np.empty((max(0, stop - start), self.dimensions), dtype=np.float32)
        for first in range(start, max(start + 1, stop), _ROWS_AT_ONCE):
            last = min(first + _ROWS_AT_ONCE, stop)
            vectors[first - start : last - start] = self._unit(self._rows.rows(first, last), range(first, last))
        return vectors

    def take(self, ids: npt.ArrayLike) -> npt.NDArray[np.float32]:
        """Vectors of the documents of 1-D `ids`, (len(ids), dimensions)."""
        wanted = np.asarray(ids, dtype=np.int64)
        vectors = np.empty((len(wanted), self.dimensions), dtype=np.float32)
        for first in range(0, len(wanted), _ROWS_AT_ONCE):
            some = wanted[first : first + _ROWS_AT_ONCE]
            vectors[first : first + len(some)] = self._unit(self._rows.take(some), some)
        return vectors

    def _unit(self, vectors: npt.NDArray[np.float16], documents: Sequence[int] | npt.NDArray[Any]) -> Vectors:
        finite = np.isfinite(vectors).all(axis=1)
        if not finite.all():
            wrong = documents[int(np.flatnonzero(~finite)[0])]
            raise DataError(
                f"{self.path}: the vector of document {wrong} has a number that is not finite; make them again"
            )
        return unit_rows(vectors)


class EmbeddingsWriter:
    """Writes the artefact shard by shard in corpus order; `close` makes it readable."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lengths: list[int] = []
        self.dimensions = self.zero_rows = 0

    def add(self, vectors: Sequence[Path]) -> None:
        """Append a shard: the rows of the float16 arrays (n, d) in files, one in memory at a time."""
        forms = [map_array(part).shape for part in vectors]
        rows, self.dimensions = sum(form[0] for form in forms), forms[0][1]
        with (self.path / f"{len(self.lengths):05d}.npy").open("wb") as file:
            header = {"descr": "<f2", "fortran_order": False, "shape": (rows, self.dimensions)}
            np.lib.format.write_array_header_1_0(file, header)
            for block in self._blocks(vectors):
                file.write(np.ascontiguousarray(block, dtype="<f2").tobytes())
        self.lengths.append(rows)

    def _blocks(self, vectors: Iterable[Path]) -> Iterable[npt.NDArray[np.float16]]:
        for part in vectors:
            block = np.load(part, allow_pickle=False)
            self.zero_rows += int((~block.any(axis=1)).sum())
            yield block

    def close(self) -> None:
        """Write what a reader checks the arrays against."""
        files.write_json(self.path / MANIFEST, {"dimensions": self.dimensions, "rows": self.lengths})


def _read_manifest(path: Path) -> tuple[list[int], int]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return [int(rows) for rows in content["rows"]], int(content["dimensions"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path}: no readable description of embeddings ({error!r}); make them again") from error


def _check(shard: Path, shape: tuple[int, int]) -> None:
    try:
        array = map_array(shard)
    except (OSError, ValueError) as error:
        raise DataError(f"{shard}: no readable array of embeddings ({error}); make them again") from error
    if array.shape != shape or array.dtype != np.float16:
        raise DataError(
            f"{shard}: float16 {shape} is described by {MANIFEST}, but this is {array.dtype} {array.shape}; "
            "make the embeddings again"
        )
