"""Lists of neighbours on disk: two memory-mapped arrays of one shape, nearest first."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from paribus.errors import DataError
from paribus.ordering.arrays import create_array, map_array

NEIGHBOURS, SIMILARITIES = "neighbours.npy", "similarities.npy"
Ids = npt.NDArray[np.int32] | npt.NDArray[np.int64]


class NeighbourLists:
    """The neighbours of every document in directory `path`; DataError where the files are cut short or disagree."""

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self.ids: Ids = self._map(NEIGHBOURS)
        """(n, k) document indices, int32 below 2**31 documents, nearest first; -1 where there is none."""
        self.similarities: npt.NDArray[np.float32] = self._map(SIMILARITIES)
        """(n, k) float32, never rising along a row; 0 where there is no neighbour."""
        if self.ids.ndim != 2 or self.ids.dtype.kind != "i":
            raise DataError(f"{self.path / NEIGHBOURS}: not (documents, neighbours) integers, but {_form(self.ids)}")
        if self.similarities.shape != self.ids.shape or self.similarities.dtype != np.float32:
            raise DataError(
                f"{self.path}: {SIMILARITIES} is {_form(self.similarities)}, but {NEIGHBOURS} is {_form(self.ids)}"
            )

    @property
    def count(self) -> int:
        """Number of documents."""
        return len(self.ids)

    @property
    def width(self) -> int:
        """Neighbours a document has at most."""
        return int(self.ids.shape[1])

    def _map(self, name: str) -> npt.NDArray[Any]:
        try:
            return map_array(self.path / name)
        except (OSError, ValueError) as error:
            raise DataError(f"{self.path / name}: no readable array of neighbours ({error})") from error


def create_lists(directory: Path, documents: int, width: int) -> tuple[Ids, npt.NDArray[np.float32]]:
    """Memory-mapped arrays to fill, both (documents, width): ids, and similarities in float32."""
    kind, shape = np.int32 if documents < 2**31 else np.int64, (documents, width)
    return create_array(directory / NEIGHBOURS, kind, shape), create_array(directory / SIMILARITIES, np.float32, shape)


def write_neighbours(directory: Path, ids: npt.NDArray[Any], similarities: npt.NDArray[Any]) -> None:
    """Write (n, k) `ids` and `similarities` as lists of neighbours."""
    written, weights = create_lists(directory, *ids.shape)
    written[:], weights[:] = ids, similarities


def _form(array: npt.NDArray[Any]) -> str:
    return f"{array.dtype} {array.shape}"
