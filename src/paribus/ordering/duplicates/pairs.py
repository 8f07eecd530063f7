"""Pairs of documents that are duplicates of each other, as a kind of duplicates finds them."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Indices = npt.NDArray[np.int64]


class Pairs(NamedTuple):
    """Three arrays of one length: two documents, in either order, and how similar they are."""

    first: Indices
    second: Indices
    similarities: npt.NDArray[np.float32]

    @classmethod
    def joined(cls, parts: Iterable["Pairs"]) -> "Pairs":
        """All pairs of `parts`, in order."""
        found = [cls.none(), *parts]
        columns = zip(*found, strict=True)
        return cls(*(np.concatenate(column) for column in columns))

    @classmethod
    def none(cls) -> "Pairs":
        """No pair."""
        return cls(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32))


def runs(keys: npt.NDArray[np.uint64]) -> tuple[Indices, Indices]:
    """Indices of the rows of (n, width) `keys`, equal ones side by side and rising, and the bounds of each such run."""
    order = np.lexsort(keys.T[::-1])
    changes = np.flatnonzero((keys[order[1:]] != keys[order[:-1]]).any(axis=1)) + 1
    return order, np.concatenate([[0], changes, [len(keys)]])


def equal_pairs(keys: npt.NDArray[np.uint64]) -> Pairs:
    """Pairs of each row of (n, width) `keys` with the first row that equals it, similarity 1."""
    order, bounds = runs(keys)
    firsts = np.repeat(order[bounds[:-1]], np.diff(bounds))
    later = order != firsts
    return Pairs(firsts[later], order[later], np.ones(int(later.sum()), np.float32))
