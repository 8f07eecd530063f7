"""Locality-sensitive hashing of MinHash signatures (Leskovec, Rajaraman and Ullman, 2020, chapter 3).

A signature is cut into bands; documents that agree in a band are candidates, and are pairs if enough of their whole
signatures agrees. Every band is a pass over one number a document, so memory does not grow with the bands; the
signatures of a bucket are in memory together.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from paribus.config.groups.embedding import MinHashDuplicates
from paribus.native.loader import address, kernel
from paribus.ordering.duplicates.pairs import Indices, Pairs, runs

Keys = npt.NDArray[np.uint64]
RECALL = 0.99
"""Chance that two documents at the threshold are candidates; all others that are more alike have a better one."""


@dataclass(frozen=True)
class Bands:
    """`count` bands of `rows` values of a signature."""

    count: int
    rows: int

    @classmethod
    def of(cls, config: MinHashDuplicates) -> Self:
        """The longest bands, and so the fewest candidates, with which no more than 1 pair in 100 is missed."""
        fitting = (
            cls(config.permutations // rows, rows)
            for rows in range(config.permutations, 0, -1)
            if 1 - (1 - config.threshold**rows) ** (config.permutations // rows) >= RECALL
        )
        return next(fitting, cls(config.permutations, 1))

    @property
    def slices(self) -> list[slice]:
        """Columns of each band."""
        return [slice(band * self.rows, (band + 1) * self.rows) for band in range(self.count)]


def buckets(documents: Indices, keys: Keys, first: Indices) -> Iterator[Indices]:
    """Documents, each bucket rising, whose `keys` (n,) of one band are equal.

    `first` (n,) are the first documents of their groups so far; where it is one, there is nothing left to compare.
    """
    order, bounds = runs(keys[:, None])
    groups = first[order]
    apart = np.minimum.reduceat(groups, bounds[:-1]) < np.maximum.reduceat(groups, bounds[:-1])
    for run in np.flatnonzero(apart).tolist():
        yield documents[order[bounds[run] : bounds[run + 1]]]


def linked(documents: Indices, signatures: npt.NDArray[np.uint64], threshold: float) -> Pairs:
    """Pairs of `documents` (n,) of an estimated Jaccard of `threshold` or more: a tree for all that they connect.

    The estimate is the share of values in which two rows of `signatures` (n, permutations) agree. Time is quadratic in
    documents that are not alike.
    """
    permutations = signatures.shape[1]
    least = next(count for count in range(permutations + 1) if count / permutations >= threshold)
    whole = np.ascontiguousarray(signatures)
    short = whole.astype(np.uint16)
    waiting, reached, agreements = (np.arange(len(documents), dtype=np.int64) for _ in range(3))
    count, frontier, found = len(waiting), list[int](), list[Pairs]()
    while count:
        if not frontier:
            frontier, waiting, count = [int(waiting[0])], waiting[1:], count - 1
        current = frontier.pop()
        form = (permutations, current, least, address(waiting), count, address(reached), address(agreements))
        left = kernel("split_agreeing")(address(short), address(whole), *form)
        near = reached[: count - left]
        similarities = (agreements[: len(near)] / permutations).astype(np.float32)
        found.append(Pairs(np.full(len(near), documents[current]), documents[near], similarities))
        frontier += near.tolist()
        count = left
    return Pairs.joined(found)
