"""Lists of neighbours as the compiled graph and path take them: checked once, and made anew only where they must be."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from paribus.native.loader import address, kernel
from paribus.ordering.arrays import create_array
from paribus.ordering.neighbours.lists import NEIGHBOURS, SIMILARITIES

MOST_DOCUMENTS = 2**31 - 1
_SORTED = -1


@dataclass(frozen=True)
class WholeLists:
    """Lists of documents that are there, by finite weights; an entry below 0, or the document itself, is none."""

    ids: npt.NDArray[np.int32]
    """(n, k), contiguous; memory-mapped where the lists are on disk."""
    weights: npt.NDArray[np.float32]
    """(n, k), contiguous."""
    exact: npt.NDArray[np.float64] | None
    """(n, k) weights that `weights` are the nearest of in single precision; None where they are the same."""
    is_sorted: bool
    """Whether every list goes from the heaviest edge down and of equal ones from the smallest id up."""
    range_sizes: npt.NDArray[np.int64]
    """Edges that lead to the documents j of range j >> `shift`."""
    shift: int

    @property
    def edges(self) -> int:
        """Directed edges."""
        return int(self.range_sizes.sum())


def whole_lists(
    ids: npt.NDArray[Any],
    weights: npt.NDArray[Any],
    *,
    kept: npt.NDArray[np.bool_] | None = None,
    take: int | None = None,
    work: Path | None = None,
) -> WholeLists:
    """The first `take` neighbours of every kept document among kept documents, numbered among these.

    `ids` (integers) and `weights` (floats) are (n, k), `kept` is (n,). With all documents and neighbours the lists stay
    as they are; otherwise they are written anew in single precision, heaviest edge first and with -1 behind the last,
    to mapped files in `work` if it is given, which have no name any more.

    Raises ValueError for shapes that differ, more than 2**31 - 1 documents, a document id of n or more, or a similarity
    that is not a finite number.
    """
    if ids.ndim != 2 or ids.shape != weights.shape:
        raise ValueError(f"neighbours {ids.shape} and similarities {weights.shape} must both be (n, k)")
    if len(ids) > MOST_DOCUMENTS:
        raise ValueError(f"{len(ids)} documents are more than the {MOST_DOCUMENTS} that a path can be found through")
    narrow, single = np.ascontiguousarray(_narrow(ids)), np.ascontiguousarray(_single(weights))
    if (kept is None or bool(kept.all())) and take in (None, ids.shape[1]):
        return _survey(narrow, single, _exact(weights, single))
    everyone = np.ones(len(ids), dtype=bool) if kept is None else kept
    compact = _compact(narrow, single, everyone, ids.shape[1] if take is None else min(take, ids.shape[1]), work)
    return _survey(*compact, None)


def _narrow(ids: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
    """int32; ids that do not fit stay ids that are not there."""
    if ids.dtype == np.int32:
        return ids.view(np.int32)
    if ids.size and (ids.max() > MOST_DOCUMENTS or ids.min() < -MOST_DOCUMENTS):
        ids = np.clip(ids, -1, MOST_DOCUMENTS)
    narrow: npt.NDArray[np.int32] = ids.astype(np.int32)
    return narrow


def _single(weights: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    if weights.dtype == np.float32:
        return weights
    with np.errstate(over="ignore"):
        single: npt.NDArray[np.float32] = weights.astype(np.float32)
    # What is finite in double precision stays so; the exact weights decide between the largest.
    largest = np.float32(np.finfo(np.float32).max)
    return np.clip(single, -largest, largest, out=single, where=np.isfinite(weights))


def _exact(weights: npt.NDArray[Any], single: npt.NDArray[np.float32]) -> npt.NDArray[np.float64] | None:
    if weights.dtype == np.float32:
        return None
    exact = np.ascontiguousarray(weights, dtype=np.float64)
    return None if np.array_equal(exact, single, equal_nan=True) else exact


def _survey(
    ids: npt.NDArray[np.int32], weights: npt.NDArray[np.float32], exact: npt.NDArray[np.float64] | None
) -> WholeLists:
    documents, width = ids.shape
    shift = _range_shift(documents)
    sizes = np.zeros((max(documents - 1, 0) >> shift) + 1, dtype=np.int64)
    found = kernel("survey_lists")(address(ids), address(weights), documents, width, shift, address(sizes))
    if found >= 0:
        raise _broken(ids.reshape(-1)[found], documents)
    # Lists that are sorted in single precision may not be in double precision.
    return WholeLists(ids, weights, exact, found == _SORTED and exact is None, sizes, shift)


def _range_shift(documents: int) -> int:
    """Ranges of 2,048 documents, whose listings a second-level cache holds, or so many that there are 8,192 of them."""
    return max(11, (documents - 1).bit_length() - 13)


def _compact(
    ids: npt.NDArray[np.int32],
    weights: npt.NDArray[np.float32],
    kept: npt.NDArray[np.bool_],
    take: int,
    work: Path | None,
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    documents, width = ids.shape
    numbers = np.where(kept, np.cumsum(kept, dtype=np.int32) - 1, -1).astype(np.int32)
    shape = (int(kept.sum()), take)
    whole = (_array(work, NEIGHBOURS, shape, np.int32), _array(work, SIMILARITIES, shape, np.float32))
    keys = np.zeros(take + 1, dtype=np.uint64)
    given = (address(ids), address(weights), documents, width, address(numbers), take)
    wrong = kernel("compact_lists")(*given, *map(address, whole), address(keys))
    if wrong >= 0:
        raise _broken(ids.reshape(-1)[wrong], documents)
    return whole


def _broken(document: int, documents: int) -> ValueError:
    if document >= documents:
        return ValueError(f"neighbours has document {document}, but only {documents} rows")
    return ValueError("similarities must be finite numbers wherever there is a neighbour")


def _array(work: Path | None, name: str, shape: tuple[int, int], kind: npt.DTypeLike) -> npt.NDArray[Any]:
    if work is None or not shape[0] * shape[1]:
        return np.empty(shape, dtype=kind)
    path = work / f"whole_{name}"
    array = create_array(path, kind, shape)
    # The mapping stays, and nothing is left behind by a kill: made anew, they are not resumed.
    path.unlink()
    return array
