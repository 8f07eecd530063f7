"""The undirected graph of nearest neighbours.

In-Context Pretraining (arXiv 2310.10638), section 2.2: documents are nodes, {i, j} is an edge if j is among i's
neighbours or i among j's, and its weight is the cosine of the two embeddings.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from paribus.native.loader import address, kernel, table_zeros
from paribus.ordering.neighbours.whole import WholeLists

_SHARES = 10
"""Edges are parted in shares of about a tenth, so that parting takes little memory beside what stays."""
_RECORD_WORDS = 3


@dataclass(frozen=True)
class Graph:
    """The edges of a document: its own list, and its listings, which are the lists it is in.

    An edge of both directions is in both and counts once; where the two disagree, its weight is the larger one.
    """

    lists: WholeLists
    begin: npt.NDArray[np.int64]
    """(n + 1,): the listings of document i are begin[i] to begin[i + 1]."""
    listings: npt.NDArray[np.uint64]
    """A key for each list a document is in: `kernels.edges` says how it holds the other document and the weight."""

    def degrees(self) -> npt.NDArray[np.uint32]:
        """Distinct neighbours of each document, (n,)."""
        ids, members = self.lists.ids, np.zeros(8, dtype=np.uint64)
        degrees = table_zeros((len(ids),), np.uint32)
        arrays = (self.begin, self.listings, members, degrees)
        kernel("count_edges")(address(ids), *ids.shape, *map(address, arrays))
        return degrees


def neighbour_graph(lists: WholeLists) -> Graph:
    """The graph of whole lists, in time linear in edges.

    With 20 neighbours it takes 168 bytes a document, 192 while it is made.
    """
    documents = len(lists.ids)
    begin, listings = table_zeros((documents + 1,), np.int64), table_zeros((lists.edges,), np.uint64)
    capacity = int(lists.range_sizes.max()) + lists.edges // _SHARES
    records = table_zeros((_RECORD_WORDS * capacity,), np.int32)
    counts = np.zeros((1 << lists.shift) + 1, dtype=np.int64)
    placed = 0
    for first, last in _shares(lists.range_sizes, capacity):
        _part(lists, first, last, records)
        form = (first, last, lists.shift, documents, placed)
        targets = (address(begin), address(listings), address(counts))
        placed = kernel("place_edges")(address(records), address(lists.range_sizes), *form, *targets)
    begin[documents] = placed
    return Graph(lists, begin, listings)


def _shares(sizes: npt.NDArray[np.int64], capacity: int) -> Iterator[tuple[int, int]]:
    """Consecutive ranges, as many at a time as `capacity` edges allow."""
    first, held = 0, 0
    for number, size in enumerate(sizes.tolist()):
        if held + size > capacity:
            yield first, number
            first, held = number, 0
        held += size
    yield first, len(sizes)


def _part(lists: WholeLists, first: int, last: int, records: npt.NDArray[np.int32]) -> None:
    """Write the edges that lead to the ranges from `first` to `last`, range after range."""
    documents, width = lists.ids.shape
    sizes = lists.range_sizes[first:last]
    cursors = np.zeros(len(lists.range_sizes), dtype=np.int64)
    cursors[first:last] = _RECORD_WORDS * (np.cumsum(sizes) - sizes)
    reciprocal = -(-(2**64) // width) if width > 1 else 0
    bounds = (first << lists.shift, min(last << lists.shift, documents))
    arrays = (address(lists.ids), address(lists.weights))
    kernel("part_edges")(
        *arrays, documents, width, reciprocal, lists.shift, *bounds, address(cursors), address(records)
    )
