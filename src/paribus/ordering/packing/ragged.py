"""Rows of different lengths, one for each position of an order."""

from abc import abstractmethod
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from paribus.ordering.packing.contexts import Contexts
from paribus.ordering.packing.documents import Integers
from paribus.ordering.packing.pieces import ContextPieces


class RaggedContexts(Contexts):
    """A row a position of the order; rows are as long as the longest of those asked for together."""

    full = False

    @property
    def count(self) -> int:
        """Rows in one pass over the order."""
        return len(self.documents)

    @abstractmethod
    def by_length(self, indices: Integers) -> Integers:
        """The same `indices` (n,), longer rows first: micro-batches of neighbours among them are padded little."""

    def _pieces(self, indices: Integers) -> ContextPieces:
        starts = np.zeros_like(indices)
        return ContextPieces(indices, starts, self.documents.lengths_at(indices), np.arange(len(indices) + 1))

    def predicted(self, indices: npt.ArrayLike) -> ContextPieces:
        """The whole rows: what of them is read leads to what is predicted."""
        return self.pieces(indices)

    def _contexts_at(self, positions: Integers) -> Integers:
        return positions


def parts_of(rows: Integers, starts: Integers, stops: Integers) -> Iterator[Integers]:
    """Columns `starts[i]` to `stops[i]` of row i of `rows` (n, columns), each a view."""
    return (row[start:stop] for row, start, stop in zip(rows, starts.tolist(), stops.tolist(), strict=True))
