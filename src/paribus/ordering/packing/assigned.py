"""Contexts that pieces of documents were assigned to: packings that rather pad than cut."""

from dataclasses import replace
from typing import Self

import numpy as np

from paribus.ordering.packing.contexts import Contexts
from paribus.ordering.packing.documents import Integers, OrderedDocuments
from paribus.ordering.packing.pieces import ContextPieces, boundaries, cut


class AssignedContexts(Contexts):
    """Contexts of the pieces with one number, in the sequence of their first pieces; memory is O(pieces).

    Each begins with an end-of-document token, as documents do where they are scored. It is an input and no target, and
    leaves room for `context_length` tokens of documents, all of which can be targets.
    """

    full = False
    left_out_tokens = 0

    def __init__(self, documents: OrderedDocuments, context_length: int, pieces: ContextPieces) -> None:
        """Contexts of `pieces`, context by context."""
        super().__init__(documents, context_length)
        self.all_pieces = replace(pieces, lead=1)

    @classmethod
    def together(
        cls, documents: OrderedDocuments, context_length: int, pieces: ContextPieces, assigned: Integers
    ) -> Self:
        """Contexts of `pieces`, given document by document; `assigned` (pieces,) says which of them are together."""
        _, first, number, sizes = np.unique(assigned, return_index=True, return_inverse=True, return_counts=True)
        sequence = np.argsort(first)
        rank = np.empty_like(sequence)
        rank[sequence] = np.arange(len(sequence))
        order = np.argsort(rank[number], kind="stable")
        found = (pieces.positions[order], pieces.starts[order], pieces.lengths[order], boundaries(sizes[sequence]))
        return cls(documents, context_length, ContextPieces(*found))

    @property
    def count(self) -> int:
        """Contexts in one pass over the order."""
        return len(self.all_pieces.bounds) - 1

    def _pieces(self, indices: Integers) -> ContextPieces:
        return self.all_pieces.of(indices)

    def _contexts_at(self, positions: Integers) -> Integers:
        pieces = np.flatnonzero(np.isin(self.all_pieces.positions, positions))
        return np.searchsorted(self.all_pieces.bounds, pieces, side="right") - 1


def one_document(documents: OrderedDocuments, context_length: int) -> AssignedContexts:
    """A context a document, several for a longer one."""
    pieces = cut(documents.lengths, context_length)
    return AssignedContexts.together(documents, context_length, pieces, np.arange(len(pieces.positions)))
