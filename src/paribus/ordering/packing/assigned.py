"""Contexts that pieces of documents were assigned to: packings that rather pad than cut."""

from typing import Self

import numpy as np

from paribus.ordering.packing.contexts import Contexts
from paribus.ordering.packing.documents import Integers, OrderedDocuments
from paribus.ordering.packing.pieces import ContextPieces, boundaries, cut


class AssignedContexts(Contexts):
    """Contexts of the pieces with one number, in the sequence of their first pieces; memory is O(pieces).

    One that would predict nothing, an empty document alone, is left out.
    """

    full = False

    def __init__(self, documents: OrderedDocuments, context_length: int, pieces: ContextPieces, left_out: int) -> None:
        """Contexts of `pieces`, context by context; `left_out` would have predicted nothing."""
        super().__init__(documents, context_length)
        self.all_pieces, self._left_out = pieces, left_out

    @classmethod
    def together(
        cls, documents: OrderedDocuments, context_length: int, pieces: ContextPieces, assigned: Integers
    ) -> Self:
        """Contexts of `pieces`, given document by document; `assigned` (pieces,) says which of them are together."""
        found = _together(pieces, assigned)
        predicting = np.flatnonzero(found.sizes > 1)
        left_out = len(found.bounds) - 1 - len(predicting)
        return cls(documents, context_length, found.of(predicting), left_out)

    @property
    def count(self) -> int:
        """Contexts in one pass over the order."""
        return len(self.all_pieces.bounds) - 1

    @property
    def left_out_tokens(self) -> int:
        """Ends of empty documents that would have had a context of their own."""
        return self._left_out

    def _pieces(self, indices: Integers) -> ContextPieces:
        return self.all_pieces.of(indices)

    def _contexts_at(self, positions: Integers) -> Integers:
        pieces = np.flatnonzero(np.isin(self.all_pieces.positions, positions))
        return np.searchsorted(self.all_pieces.bounds, pieces, side="right") - 1


def _together(pieces: ContextPieces, assigned: Integers) -> ContextPieces:
    """The pieces that were assigned alike as one context each, numbered by their first piece."""
    _, first, number, sizes = np.unique(assigned, return_index=True, return_inverse=True, return_counts=True)
    sequence = np.argsort(first)
    rank = np.empty_like(sequence)
    rank[sequence] = np.arange(len(sequence))
    order = np.argsort(rank[number], kind="stable")
    return ContextPieces(
        pieces.positions[order], pieces.starts[order], pieces.lengths[order], boundaries(sizes[sequence])
    )


def one_document(documents: OrderedDocuments, context_length: int) -> AssignedContexts:
    """A context a document, several for a longer one; an empty document has none, as it predicts nothing."""
    pieces = cut(documents.lengths, context_length)
    return AssignedContexts.together(documents, context_length, pieces, np.arange(len(pieces.positions)))
