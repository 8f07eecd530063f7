"""What every packing gives to training: contexts of one length, gathered from the documents when they are asked for.

A context is a row of at most L + 1 tokens, L the context length: the first L are its inputs, each predicts the one
after it. A shorter row is padded at its end with end-of-document tokens, which predict nothing and which no token
before them can attend to. Every context predicts at least one token.
"""

from abc import ABC, abstractmethod

import numpy as np
import numpy.typing as npt

from paribus.ordering.packing.documents import Integers, OrderedDocuments
from paribus.ordering.packing.pieces import ContextPieces

NO_TARGET = -1


class Contexts(ABC):
    """Contexts of `context_length` tokens, numbered from 0 along the order of the documents.

    Every method that takes (n,) context `indices`, in any sequence and with repeats, raises IndexError for one outside
    range(count).
    """

    full: bool
    """Whether every context predicts `context_length` tokens, so that none is padded."""

    def __init__(self, documents: OrderedDocuments, context_length: int) -> None:
        self.documents, self.context_length = documents, context_length

    @property
    @abstractmethod
    def count(self) -> int:
        """Contexts in one pass over the order."""

    @property
    @abstractmethod
    def left_out_tokens(self) -> int:
        """Tokens of the order, end-of-document tokens included, that no context holds."""

    @abstractmethod
    def _pieces(self, indices: Integers) -> ContextPieces: ...

    @abstractmethod
    def _contexts_at(self, positions: Integers) -> Integers:
        """Indices of the contexts that hold tokens of the documents at `positions`, in any sequence."""

    def pieces(self, indices: npt.ArrayLike) -> ContextPieces:
        """The pieces of documents that contexts hold."""
        chosen = np.asarray(indices, dtype=np.int64)
        if chosen.size and (chosen.min() < 0 or chosen.max() >= self.count):
            raise IndexError(f"contexts {chosen.min()} to {chosen.max()} are not in range({self.count})")
        return self._pieces(chosen)

    def target_pieces(self, indices: npt.ArrayLike) -> ContextPieces:
        """The pieces of contexts without the tokens that nothing before them in the context leads to."""
        pieces = self.pieces(indices)
        unpredicted = pieces.unpredicted
        unpredicted[pieces.bounds[:-1]] |= not pieces.lead
        return ContextPieces(pieces.positions, pieces.starts + unpredicted, pieces.lengths - unpredicted, pieces.bounds)

    def predicted(self, indices: npt.ArrayLike) -> ContextPieces:
        """The pieces of contexts that a model learns from: their targets, and of rows with a source that too."""
        return self.target_pieces(indices)

    def rows(self, indices: npt.ArrayLike) -> tuple[Integers, Integers]:
        """Input tokens and the tokens they predict, -1 where there is none, both (n, context_length) int64."""
        pieces = self.pieces(indices)
        tokens = self._tokens(pieces)
        targets = tokens[:, 1:].copy()
        targets[np.arange(self.context_length) >= pieces.sizes[:, None] - 1] = NO_TARGET
        unpredicted = pieces.unpredicted
        targets[pieces.rows[unpredicted], pieces.columns[unpredicted] - 1] = NO_TARGET
        return tokens[:, :-1], targets

    def _tokens(self, pieces: ContextPieces) -> Integers:
        width = self.context_length + 1
        tokens = np.full((len(pieces.bounds) - 1, width), self.documents.eos_id, dtype=np.int64)
        flat, places = tokens.reshape(-1), pieces.rows * width + pieces.columns
        edges = zip(places.tolist(), (places + pieces.lengths).tolist(), strict=True)
        self.documents.read(pieces.positions, pieces.starts, (flat[begin:end] for begin, end in edges))
        return tokens

    def target_tokens(self, indices: npt.ArrayLike) -> Integers:
        """Tokens that each context predicts, (n,) int64."""
        return self.pieces(indices).targets

    def source_bytes(self, token_byte_lengths: Integers, indices: npt.ArrayLike) -> Integers:
        """Bytes of source text that the targets of each context cover, (n,) int64.

        `token_byte_lengths` (vocabulary,) int64 gives the bytes a token stands for, none of a special token.
        """
        pieces = self.target_pieces(indices)
        stops = pieces.starts + pieces.lengths
        return pieces.summed(self.documents.summed(token_byte_lengths, pieces.positions, pieces.starts, stops))

    def documents_of(self, index: int) -> list[tuple[int, int]]:
        """(document, tokens of it) for the documents a context holds, in its sequence.

        The tokens are those of the whole row: inputs and the last target.
        """
        pieces = self.pieces([index])
        return list(zip(self.documents.texts_at(pieces.positions).tolist(), pieces.lengths.tolist(), strict=True))

    def contexts_of(self, document: int) -> Integers:
        """Indices of the contexts that hold tokens of `document`, ascending; empty where the order leaves it out."""
        return np.unique(self._contexts_at(self.documents.positions_of(document)))
