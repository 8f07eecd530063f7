"""Runs of a document's tokens, which contexts are made of."""

from dataclasses import dataclass

import numpy as np

from paribus.ordering.packing.documents import Integers

CONTEXTS_AT_ONCE = 65_536
"""Contexts whose pieces are looked at together, so that memory is bounded however many there are."""


@dataclass(frozen=True)
class ContextPieces:
    """The pieces of n contexts, context by context and within one in the sequence of the order.

    Piece p holds tokens `starts[p]` to `starts[p] + lengths[p]` of the document at position `positions[p]` of the
    order; context i holds pieces `bounds[i]` to `bounds[i + 1]`, at least one.
    """

    positions: Integers
    starts: Integers
    lengths: Integers
    bounds: Integers
    lead: int = 0
    """Tokens of each context before its first piece: 1 where it begins with an end-of-document token, else 0."""

    @property
    def rows(self) -> Integers:
        """The context, 0 to n - 1, of each piece."""
        return np.repeat(np.arange(len(self.bounds) - 1), np.diff(self.bounds))

    @property
    def sizes(self) -> Integers:
        """Tokens of each context, (n,)."""
        return self.summed(self.lengths) + self.lead

    @property
    def columns(self) -> Integers:
        """Tokens of its context that stand before each piece."""
        before = np.cumsum(self.lengths) - self.lengths
        return before - np.repeat(before[self.bounds[:-1]], np.diff(self.bounds)) + self.lead

    @property
    def unpredicted(self) -> np.ndarray:
        """Whether each piece has a token before it in its context that its first token does not follow from, bool.

        So it is with a piece that begins within its document, elsewhere than at the begin of the context.
        """
        return (self.starts > 0) & (self.columns > 0)

    @property
    def targets(self) -> Integers:
        """Tokens that each context predicts: those that follow from one before them in it, (n,)."""
        return self.summed(self.lengths - self.unpredicted) - 1 + self.lead

    def summed(self, values: np.ndarray) -> Integers:
        """Sums over the pieces of each context of one value a piece, (n,)."""
        total = np.zeros(len(values) + 1, dtype=np.int64)
        np.cumsum(values, out=total[1:])
        return np.diff(total[self.bounds])

    def of(self, contexts: Integers) -> "ContextPieces":
        """The pieces of some of the contexts, in the sequence in which these are named."""
        first, last = self.bounds[contexts], self.bounds[contexts + 1]
        chosen = ranges(first, last)
        return ContextPieces(
            self.positions[chosen], self.starts[chosen], self.lengths[chosen], boundaries(last - first), self.lead
        )


def ranges(first: Integers, last: Integers) -> Integers:
    """The concatenation of range(first[i], last[i]) for every i."""
    bounds = boundaries(last - first)
    return np.arange(bounds[-1]) + np.repeat(first - bounds[:-1], last - first)


def boundaries(sizes: Integers) -> Integers:
    """Where consecutive parts of `sizes` begin, and the end, (n + 1,)."""
    bounds = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=bounds[1:])
    return bounds


def cut(lengths: Integers, room: int) -> ContextPieces:
    """The pieces of documents of `lengths` (m,) tokens: context i of the result is the document at position i.

    A document of at most `room` tokens is one piece. A longer one is cut into pieces of that many tokens, of which each
    begins with the token the one before ends with, so that the others are predicted once; the last piece has the rest,
    at least two tokens.
    """
    counts = np.maximum(1, -(-(lengths - 1) // (room - 1)))
    positions = np.repeat(np.arange(len(lengths)), counts)
    starts = ranges(np.zeros_like(counts), counts) * (room - 1)
    return ContextPieces(positions, starts, np.minimum(lengths[positions] - starts, room), boundaries(counts))
