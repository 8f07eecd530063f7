"""Arrays in files, lists of neighbours, and seeded generators.

Arrays of rows are written whole or not at all, and read as if they were one array.
"""

import errno
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from paribus.errors import DataError
from paribus.store.files import replacing

Array = npt.NDArray[Any]
NEIGHBOURS, SIMILARITIES = "neighbours.npy", "similarities.npy"
Ids = npt.NDArray[np.int32] | npt.NDArray[np.int64]
SHUFFLE, JUMPS, CONTEXTS, CENTROIDS, CLUSTERS, SAMPLES, MIXED, STRETCHES, PLACES = range(9)
"""Purposes of random numbers; two purposes with one seed never share any."""
IDEOGRAPHS = "\u3040-\u30ff\u3400-\u9fff"
TERM = rf"[{IDEOGRAPHS}]|[^\W{IDEOGRAPHS}]{{2,}}"
"""A word of two characters or more, or one character of a script that is written without spaces."""


def save_array(path: Path, array: Array) -> None:
    """Replace `path` (.npy) by `array` in one step, so that a kill leaves the whole file or none."""
    with replacing(path) as aside, aside.open("wb") as file:
        np.save(file, array, allow_pickle=False)


def map_array(path: Path) -> Array:
    """The array of a `.npy` file, memory-mapped read-only; OSError or ValueError where the file is not whole."""
    try:
        array: Array = np.load(path, mmap_mode="r", allow_pickle=False)
    except EOFError as error:
        raise ValueError("the file is empty") from error
    return array


def open_array(path: Path, content: str) -> Array:
    """Map an array, with a DataError that names the file and its `content`."""
    try:
        return map_array(path)
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: no readable array of {content} ({error})") from error


def create_array(path: Path, kind: npt.DTypeLike, shape: tuple[int, ...]) -> Array:
    """Zeros in a `.npy` file, memory-mapped to be filled.

    Space on the disk is allocated at once; OSError where there is too little. Without that, writing to a mapped file on
    a full disk would kill the process.
    """
    with path.open("wb") as file:
        header = {"descr": np.lib.format.dtype_to_descr(np.dtype(kind)), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        size = file.tell() + math.prod(shape) * np.dtype(kind).itemsize
        file.flush()
        _allocate(file.fileno(), size, path)
    return np.lib.format.open_memmap(path, mode="r+")


def _allocate(handle: int, size: int, path: Path) -> None:
    os.ftruncate(handle, size)
    if not hasattr(os, "posix_fallocate"):
        return
    try:
        os.posix_fallocate(handle, 0, size)
    except OSError as error:
        # Not every file system can allocate space; on others the file stays sparse.
        if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
            raise OSError(error.errno, error.strerror, str(path)) from error


class FileRows:
    """The rows of arrays in several files, of one width and type; a file is open only while it is read."""

    def __init__(self, files: Sequence[Path], lengths: Sequence[int]) -> None:
        self.files = list(files)
        self.offsets = boundaries(lengths)
        """(files + 1,) index of the first row of each file, ending with the number of rows."""

    def __len__(self) -> int:
        return int(self.offsets[-1])

    def rows(self, start: int, stop: int) -> Array:
        """Rows `start` to `stop`, copied; IndexError where there are none."""
        self._check(start, stop)
        first, last = np.searchsorted(self.offsets[1:-1], [start, max(start, stop - 1)], side="right").tolist()
        parts = []
        for file in range(first, last + 1):
            origin = int(self.offsets[file])
            parts.append(map_array(self.files[file])[max(0, start - origin) : stop - origin])
        return np.concatenate(parts)

    def take(self, ids: npt.ArrayLike) -> Array:
        """The rows of 1-D `ids` in that order, copied; IndexError where there is no such row."""
        numbers = np.asarray(ids, dtype=np.int64)
        if not len(numbers):
            return self.rows(0, 1)[:0]
        self._check(int(numbers.min()), int(numbers.max()) + 1)
        home = np.searchsorted(self.offsets, numbers, side="right") - 1
        order = np.argsort(home, kind="stable")
        files, starts = np.unique(home[order], return_index=True)
        groups = zip(files.tolist(), np.split(order, starts[1:]), strict=True)
        unordered = np.concatenate(
            [map_array(self.files[file])[numbers[indices] - self.offsets[file]] for file, indices in groups]
        )
        rows = np.empty_like(unordered)
        rows[order] = unordered
        return rows

    def _check(self, start: int, stop: int) -> None:
        if not 0 <= start <= stop <= len(self):
            raise IndexError(f"rows {start} to {stop} of {len(self)}")


class NeighbourLists:
    """The neighbours of every document in directory `path`; DataError where the files are cut short or disagree."""

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self.ids: Ids = open_array(self.path / NEIGHBOURS, "neighbours")
        """(n, k) document indices, int32 below 2**31 documents, nearest first; -1 where there is none."""
        self.similarities: npt.NDArray[np.float32] = open_array(self.path / SIMILARITIES, "neighbours")
        """(n, k) float32, never rising along a row; 0 where there is no neighbour."""
        if self.ids.ndim != 2 or self.ids.dtype.kind != "i":
            raise DataError(f"{self.path / NEIGHBOURS}: not (documents, neighbours) integers, but {_form(self.ids)}")
        if self.similarities.shape != self.ids.shape or self.similarities.dtype != np.float32:
            raise DataError(
                f"{self.path}: {SIMILARITIES} is {_form(self.similarities)}, but {NEIGHBOURS} is {_form(self.ids)}"
            )

    @property
    def count(self) -> int:
        return len(self.ids)

    @property
    def width(self) -> int:
        return int(self.ids.shape[1])


def create_lists(directory: Path, documents: int, width: int) -> tuple[Ids, npt.NDArray[np.float32]]:
    """Memory-mapped arrays to fill, both (documents, width): ids, and similarities in float32."""
    kind, shape = np.int32 if documents < 2**31 else np.int64, (documents, width)
    return create_array(directory / NEIGHBOURS, kind, shape), create_array(directory / SIMILARITIES, np.float32, shape)


def _form(array: npt.NDArray[Any]) -> str:
    return f"{array.dtype} {array.shape}"


def unit_rows(vectors: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.float32]:
    """The rows of (n, d) `vectors` scaled to length 1, float32; a row of zeros stays one (it is like no document)."""
    exact = vectors.astype(np.float64)
    lengths = np.sqrt(np.einsum("nd,nd->n", exact, exact))[:, None]
    unit = np.divide(exact, lengths, out=np.zeros_like(exact), where=lengths > 0)
    return np.asarray(unit, dtype=np.float32)


def write_neighbours(directory: Path, ids: npt.NDArray[Any], similarities: npt.NDArray[Any]) -> None:
    """Write (n, k) `ids` and `similarities` as lists of neighbours."""
    written, weights = create_lists(directory, *ids.shape)
    written[:], weights[:] = ids, similarities


def mean_of(values: npt.NDArray[np.floating[Any]]) -> float:
    """The mean, summed in double precision; 0 of nothing."""
    return float(values.mean(dtype=np.float64)) if len(values) else 0.0


def spread(count: int, most: int) -> npt.NDArray[np.int64]:
    """Numbers of range(count), at most `most`, evenly spread and ascending."""
    taken = min(count, most)
    return np.arange(taken, dtype=np.int64) * count // max(1, taken)


def boundaries(sizes: Sequence[int] | npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Begins of consecutive parts of `sizes`, and the end, (n + 1,)."""
    bounds = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, dtype=np.int64, out=bounds[1:])
    return bounds


def seed_sequence(purpose: int, *seeds: int) -> np.random.SeedSequence:
    """The seed sequence of a purpose; `seeds` are non-negative."""
    return np.random.SeedSequence(entropy=seeds, spawn_key=(purpose,))


def permutation(count: int, purpose: int, *seeds: int) -> np.ndarray:
    """A uniformly random permutation of range(count), (count,) int64."""
    generator = np.random.Generator(np.random.PCG64(seed_sequence(purpose, *seeds)))
    return generator.permutation(np.arange(count, dtype=np.int64))
