"""The kNN baseline of In-Context Pretraining (arXiv 2310.10638, section 3.1): each document and its neighbours.

Every kept document heads one group: itself, then its nearest kept neighbours. Groups follow each other in the seeded
shuffle that `standard` has, so the two differ in nothing but the neighbours. Documents repeat.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from paribus.ordering.neighbours.lists import NeighbourLists
from paribus.ordering.neighbours.whole import whole_lists
from paribus.ordering.seeding import SHUFFLE, permutation


@dataclass(frozen=True)
class NearestGroups:
    """Documents in the order they are read, in groups."""

    documents: npt.NDArray[np.int64]
    """(m,) document indices."""
    starts: npt.NDArray[np.int64]
    """(g + 1,) positions in `documents` at which a group begins, ending with m."""
    mean_similarity: float
    """Of a document and the neighbours that follow it; 0 where nobody has a neighbour."""


def with_neighbours(
    lists: NeighbourLists, kept: npt.NDArray[np.bool_], neighbours: int, *, seed: int, work: Path | None = None
) -> NearestGroups:
    """Each kept document followed by its first `neighbours` kept neighbours.

    `kept` is (n,) bool; `work` is a directory for the lists of kept documents, which are in memory without it.
    """
    near = whole_lists(lists.ids, lists.similarities, kept=kept, take=neighbours, work=work)
    documents = np.flatnonzero(kept).astype(np.int64)
    shuffle = permutation(len(documents), SHUFFLE, seed)
    rows = np.column_stack([np.arange(len(documents), dtype=np.int32), near.ids])[shuffle]
    present = rows >= 0
    starts = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum(present.sum(axis=1), out=starts[1:])
    following = near.weights[near.ids >= 0]
    mean = float(following.mean(dtype=np.float64)) if len(following) else 0.0
    return NearestGroups(documents[rows[present]], starts, mean)
