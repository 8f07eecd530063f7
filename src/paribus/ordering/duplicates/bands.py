"""Locality-sensitive hashing of MinHash signatures (Leskovec, Rajaraman and Ullman, 2020, chapter 3).

A signature is cut into bands; documents that agree in a band are candidates, and are pairs if enough of their whole
signatures agrees. Every band is a pass over one number a document, so memory does not grow with the bands.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from paribus.config.groups.embedding import MinHashDuplicates
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

    The estimate is the share of values in which two rows of `signatures` (n, permutations) agree.
    """
    waiting, frontier, found = np.arange(len(documents)), list[int](), list[Pairs]()
    while len(waiting):
        if not frontier:
            frontier, waiting = [int(waiting[0])], waiting[1:]
        current = frontier.pop()
        similarities = (signatures[waiting] == signatures[current]).mean(axis=1)
        near = similarities >= threshold
        reached = waiting[near]
        from_here = np.full(len(reached), documents[current])
        found.append(Pairs(from_here, documents[reached], similarities[near].astype(np.float32)))
        frontier += reached.tolist()
        waiting = waiting[~near]
    return Pairs.joined(found)
