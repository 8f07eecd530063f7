"""What can be said of packed contexts by reading their tokens only."""

from dataclasses import dataclass, fields
from typing import Self

import numpy as np

from paribus.ordering.contexts.readings import sampled_in
from paribus.ordering.contexts.text import OrderedText
from paribus.ordering.packing.contexts import Contexts
from paribus.ordering.packing.documents import Integers
from paribus.ordering.packing.pairs import PairContexts


@dataclass(frozen=True)
class Measured:
    """What was measured of n consecutive contexts; all arrays are int64."""

    text_bytes: Integers
    """Bytes of source text of the targets of each context, (n,)."""
    targets: Integers
    """Tokens that each context predicts, (n,)."""
    places: Integers
    """Bytes of the ordered text before the first token of each context, (n,)."""
    ends: Integers
    """Bytes of the ordered text before the token after the last of each context, (n,)."""
    sampled: Integers
    """Number of a sampled byte of the corpus and of a context that predicts it, (found, 2), by contexts."""

    @classmethod
    def of(  # noqa: PLR0917 (what is measured, by what, and which of it)
        cls, contexts: Contexts, text: OrderedText, lossy: bool, points: Integers, start: int, stop: int
    ) -> Self:
        """Contexts `start` to `stop` of `text`, whose sampled bytes are `points`.

        The tokens of a tokenizer that is `lossy` stand for less than was read, so budgets of text would read more of it
        than others do: text counts by a token's share of its document. Pairs are measured by their tokens.
        """
        indices = np.arange(start, stop, dtype=np.int64)
        pieces, predicted = contexts.pieces(indices), contexts.predicted(indices)
        if lossy and not isinstance(contexts, PairContexts):
            begins, stops = text.spans(predicted.positions, predicted.starts, predicted.lengths)
            text_bytes = predicted.summed(stops - begins)
        else:
            text_bytes = contexts.source_bytes(text.token_byte_lengths, indices)
        places, ends = text.extents(pieces)
        held, rows = sampled_in(predicted, text, points)
        sampled = np.stack([held, start + rows], axis=1)
        return cls(text_bytes, contexts.target_tokens(indices), places, ends, sampled)


ARRAYS = tuple(field.name for field in fields(Measured))
"""The names of its arrays."""


@dataclass(frozen=True)
class MeasuredContexts(Measured):
    """What was measured of all contexts of a packing, and what they are contexts of."""

    context_length: int
    """Tokens of a context."""
    ordered_bytes: int
    """Bytes of the ordered text; text that the order repeats counts as often."""
    corpus_bytes: int
    """Bytes of the training split, of which some are sampled."""

    @property
    def count(self) -> int:
        """Contexts in one pass over the order."""
        return len(self.places)
