"""What a packing does to the documents: how many share a context, how many are cut, how much is padding."""

from dataclasses import dataclass

import numpy as np

from paribus.ordering.packing.contexts import Contexts
from paribus.ordering.packing.documents import Integers
from paribus.ordering.packing.pieces import CONTEXTS_AT_ONCE, ContextPieces


@dataclass(frozen=True)
class PackingStatistics:
    """One epoch of the contexts of a packing.

    A context holds its inputs and its last target. A document that the order names several times counts each time.
    """

    contexts: int
    context_length: int
    target_tokens: int
    """Predicted tokens."""
    padding: float
    """Share of the contexts' positions that predict nothing: padding, and the end of a document before a piece that
    begins within another."""
    documents_per_context: float
    """Mean."""
    contexts_of_documents: tuple[int, ...]
    """Contexts that hold 0, 1, 2, ... documents."""
    documents: int
    """Documents of which a context holds a token."""
    cut_documents: int
    """Those of which no context holds every token, the end-of-document token included."""
    left_out_tokens: int
    """Tokens of the order, end-of-document tokens included, that no context holds."""

    @property
    def cut_share(self) -> float:
        """Share of documents that are cut."""
        return self.cut_documents / self.documents


def packing_statistics(contexts: Contexts) -> PackingStatistics:
    """Statistics of all contexts; no token is read, and memory is O(documents)."""
    tally = _Tally(contexts)
    for start in range(0, contexts.count, CONTEXTS_AT_ONCE):
        tally.add(contexts.pieces(np.arange(start, min(start + CONTEXTS_AT_ONCE, contexts.count))))
    return tally.statistics()


class _Tally:
    """Counts over the contexts seen so far."""

    def __init__(self, contexts: Contexts) -> None:
        self.contexts = contexts
        self.held, self.whole = np.zeros((2, len(contexts.documents)), dtype=bool)
        self.by_documents: Integers = np.zeros(contexts.context_length + 2, dtype=np.int64)
        self.targets = 0

    def add(self, pieces: ContextPieces) -> None:
        """Count some more contexts."""
        lengths = self.contexts.documents.lengths_at(pieces.positions)
        self.held[pieces.positions] = True
        self.whole[pieces.positions[pieces.lengths == lengths]] = True
        self.by_documents += np.bincount(np.diff(pieces.bounds), minlength=len(self.by_documents))
        self.targets += int(pieces.targets.sum())

    def statistics(self) -> PackingStatistics:
        """The statistics of what was counted."""
        count, length = self.contexts.count, self.contexts.context_length
        return PackingStatistics(
            contexts=count,
            context_length=length,
            target_tokens=self.targets,
            padding=1 - self.targets / (count * length),
            documents_per_context=float(self.by_documents @ np.arange(len(self.by_documents))) / count,
            contexts_of_documents=tuple(np.trim_zeros(self.by_documents, "b").tolist()),
            documents=int(self.held.sum()),
            cut_documents=int((self.held & ~self.whole).sum()),
            left_out_tokens=self.contexts.left_out_tokens,
        )
