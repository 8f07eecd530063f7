"""Packing `concatenate`: the documents end to end, cut into contexts of fixed length."""

import numpy as np

from paribus.ordering.packing.contexts import Contexts
from paribus.ordering.packing.documents import Integers, OrderedDocuments
from paribus.ordering.packing.pieces import ContextPieces, boundaries, ranges


class PackedStream(Contexts):
    """The concatenation of the documents, cut into contexts.

    Context c reads tokens c·L to c·L + L and predicts tokens c·L + 1 to c·L + L + 1, so every token but the stream's
    first is predicted once. An end shorter than a context is left out. Seeking costs O(log documents).
    """

    full = True

    def __init__(self, documents: OrderedDocuments, context_length: int) -> None:
        """Contexts of `context_length` tokens."""
        super().__init__(documents, context_length)
        self._starts = boundaries(documents.lengths)
        self._total = int(self._starts[-1])

    @property
    def count(self) -> int:
        """Contexts in one pass over the stream."""
        return max(self._total - 1, 0) // self.context_length

    @property
    def left_out_tokens(self) -> int:
        """Tokens behind the last context."""
        return self._total - (self.count * self.context_length + 1 if self.count else 0)

    def _begins(self, indices: Integers) -> Integers:
        """Tokens of the stream before each context."""
        return indices * self.context_length

    def _beginning_before(self, tokens: Integers) -> Integers:
        """Contexts that begin before each of some places in the stream."""
        return np.clip(-(-tokens // self.context_length), 0, self.count)

    def _pieces(self, indices: Integers) -> ContextPieces:
        begins = self._begins(indices)
        ends = begins + self.context_length + 1
        first = np.searchsorted(self._starts, begins, side="right") - 1
        last = np.searchsorted(self._starts, ends)
        positions, pieces = ranges(first, last), last - first
        start = self._starts[positions]
        lower = np.maximum(np.repeat(begins, pieces), start)
        upper = np.minimum(np.repeat(ends, pieces), self._starts[positions + 1])
        return ContextPieces(positions, lower - start, upper - lower, boundaries(pieces))

    def _contexts_at(self, positions: Integers) -> Integers:
        first = self._beginning_before(self._starts[positions] - self.context_length)
        return ranges(first, self._beginning_before(self._starts[positions + 1]))


class GroupedStream(PackedStream):
    """The concatenation of the documents, cut so that each context begins where a group of them does.

    A context reads on until it is full, into the groups that follow if its own is short. The next one begins with the
    first group that begins neither within its own group nor within the context. What is over is left out.
    """

    def __init__(self, documents: OrderedDocuments, context_length: int, groups: Integers) -> None:
        """`groups` (g + 1,) are the positions of the order at which groups begin, and its end."""
        super().__init__(documents, context_length)
        self._context_begins = _group_begins(self._starts[groups], context_length)

    @property
    def count(self) -> int:
        """Contexts in one pass over the stream."""
        return len(self._context_begins)

    @property
    def left_out_tokens(self) -> int:
        """Tokens between contexts and behind the last one."""
        shared = np.count_nonzero(np.diff(self._context_begins) == self.context_length)
        return self._total - self.count * (self.context_length + 1) + int(shared)

    def _begins(self, indices: Integers) -> Integers:
        return self._context_begins[indices]

    def _beginning_before(self, tokens: Integers) -> Integers:
        return np.searchsorted(self._context_begins, tokens)


def _group_begins(bounds: Integers, context_length: int) -> Integers:
    """Where the contexts begin in a stream whose groups begin at `bounds`, which ends with the stream's end."""
    begins, ends = bounds[:-1], bounds[1:]
    following = np.searchsorted(begins, np.maximum(ends, begins + context_length)).tolist()
    fitting = int(np.searchsorted(begins, bounds[-1] - context_length))
    chosen, group = [], 0
    while group < fitting:
        chosen.append(group)
        group = following[group]
    return begins[np.array(chosen, dtype=np.int64)]
