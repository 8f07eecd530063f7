"""Near duplicates by embedding (In-Context Pretraining, arXiv 2310.10638, Appendix A.1).

Pairs are looked for among the nearest neighbours, which are there for the ordering anyway.
"""

from collections.abc import Iterator

import numpy as np

from paribus.ordering.duplicates.pairs import Pairs
from paribus.ordering.neighbours.lists import NeighbourLists

ROWS_AT_ONCE = 262_144


def embedding_pairs(lists: NeighbourLists, threshold: float) -> Pairs:
    """Pairs of documents and neighbours whose cosine is above `threshold`."""
    return Pairs.joined(_pairs(lists, threshold))


def _pairs(lists: NeighbourLists, threshold: float) -> Iterator[Pairs]:
    for start in range(0, lists.count, ROWS_AT_ONCE):
        ids = lists.ids[start : start + ROWS_AT_ONCE].astype(np.int64)
        cosines = np.asarray(lists.similarities[start : start + ROWS_AT_ONCE])
        rows, columns = np.nonzero((ids >= 0) & (cosines > threshold))
        yield Pairs(rows + start, ids[rows, columns], cosines[rows, columns])
