"""Places of tokens in the ordered text, in bytes, so that they are comparable across tokenizers and packings."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Self

import numpy as np
import numpy.typing as npt

from paribus.errors import DataError
from paribus.ordering import SAMPLED_BYTES
from paribus.ordering.arrays import PLACES, boundaries, seed_sequence
from paribus.ordering.packing import ContextPieces, Contexts, Integers, OrderedDocuments, ranges
from paribus.ordering.pairs import PairContexts

READINGS = "readings.npy"


class OrderedText:
    """The text of the documents of an order, end to end."""

    def __init__(
        self, documents: OrderedDocuments, source_bytes: npt.ArrayLike, token_byte_lengths: npt.ArrayLike
    ) -> None:
        """`source_bytes` (documents of the corpus,) are the UTF-8 bytes of each text, the same in every draw.

        `token_byte_lengths` (vocabulary,) are those that a token stands for. DataError for an order without text.
        """
        self.documents: OrderedDocuments = documents
        self._source_bytes: Integers = np.asarray(source_bytes, dtype=np.int64)
        self.token_byte_lengths: Integers = np.asarray(token_byte_lengths, dtype=np.int64)
        """Bytes that a token stands for, (vocabulary,)."""
        self._begins: Integers = boundaries(self._source_bytes[documents.order])
        """Bytes before each position of one draw, and all of them, (m + 1,); every draw has the same."""
        self.bytes = documents.draws * int(self._begins[-1])
        """Bytes of the ordered text; text that the order repeats counts as often."""
        if not self.bytes:
            raise DataError("the ordered corpus has no text at all; give documents with text")
        self.corpus_begins: Integers = boundaries(self._source_bytes)
        """Bytes of the corpus before each of its documents, and all of them, (documents + 1,)."""

    def within(self, positions: Integers, tokens: Integers) -> Integers:
        """Bytes of text before token `tokens[i]` of the document at position `positions[i]` of the order, (n,).

        Where the tokens of a document stand for more or fewer bytes than its text has, as with a normalizing or lossy
        tokenizer, their bytes are scaled to those of the text.
        """
        text_bytes = self._source_bytes[self.documents.texts_at(positions)]
        ends = self.documents.lengths_at(positions) - 1
        offsets = np.where(tokens >= ends, text_bytes, 0)
        inside = np.flatnonzero((tokens > 0) & (tokens < ends))
        if len(inside):
            offsets[inside] = self._inside(positions[inside], tokens[inside], text_bytes[inside])
        return offsets

    def _inside(self, positions: Integers, tokens: Integers, text_bytes: Integers) -> Integers:
        """`within` for tokens that are neither the first nor the end of their documents, of `text_bytes` each.

        A document is read once, from cut to cut, however many of the tokens are in it.
        """
        order = np.lexsort((tokens, positions))
        sorted_positions, cuts = positions[order], tokens[order]
        first = np.flatnonzero(np.diff(sorted_positions, prepend=-1))
        sizes = np.diff(first, append=len(sorted_positions))
        before = np.concatenate([[0], cuts[:-1]])
        before[first] = 0
        sums = boundaries(self.documents.summed(self.token_byte_lengths, sorted_positions, before, cuts))
        parts = sums[1:] - np.repeat(sums[first], sizes)
        last = first + sizes - 1
        ends = self.documents.lengths_at(sorted_positions[last]) - 1
        rests = self.documents.summed(self.token_byte_lengths, sorted_positions[last], cuts[last], ends)
        offsets = np.empty_like(parts)
        offsets[order] = _scale(parts, np.repeat(parts[last] + rests, sizes), text_bytes[order])
        return offsets

    def extents(self, pieces: ContextPieces) -> tuple[Integers, Integers]:
        """Bytes of the ordered text before the first token of each context, and before the token after its last.

        Both (contexts,).
        """
        first, last = pieces.bounds[:-1], pieces.bounds[1:] - 1
        positions = np.concatenate([pieces.positions[first], pieces.positions[last]])
        tokens = np.concatenate([pieces.starts[first], pieces.starts[last] + pieces.lengths[last]])
        draws, of_draw = np.divmod(positions, len(self.documents.order))
        # A context ends in the document in which the next one begins: asked for together, it is read once.
        begins = self._begins[of_draw] + draws * self._begins[-1]
        places, ends = np.split(begins + self.within(positions, tokens), 2)
        return places, ends

    def spans(self, positions: Integers, starts: Integers, lengths: Integers) -> tuple[Integers, Integers]:
        """Bytes of its document's text before each piece, and before the token after the piece, both (n,)."""
        begins, ends = np.split(self.within(np.tile(positions, 2), np.concatenate([starts, starts + lengths])), 2)
        return begins, ends


def _scale(parts: Integers, totals: Integers, text_bytes: Integers) -> Integers:
    """`parts` · `text_bytes` // `totals`; 0 where a total is 0."""
    scaled = parts.copy()
    unequal = np.flatnonzero(totals != text_bytes)
    # For a document of gigabytes the product of two sizes has more than 64 bits.
    products = parts[unequal].astype(object) * text_bytes[unequal] // np.maximum(totals[unequal], 1)
    scaled[unequal] = products.astype(np.int64)
    return scaled


@dataclass(frozen=True)
class Measured:
    """Measures of n consecutive contexts; all arrays are int64."""

    text_bytes: Integers
    """Bytes of source text of the targets of each context, (n,)."""
    targets: Integers
    """Tokens that each context predicts, (n,)."""
    places: Integers
    """Bytes of the ordered text before the first token of each context, (n,)."""
    ends: Integers
    """Bytes of the ordered text before the token after the last of each context, (n,)."""
    sampled: Integers
    """Number of a sampled byte of the corpus and of a context that predicts it, (found, 2), in order of contexts."""

    @classmethod
    def of(  # noqa: PLR0917 (what is measured, by what, and which of it)
        cls, contexts: Contexts, text: OrderedText, lossy: bool, points: Integers, start: int, stop: int
    ) -> Self:
        """Contexts `start` to `stop` of `text`, whose sampled bytes are `points`.

        Tokens of a `lossy` tokenizer stand for fewer bytes than their text has, so a budget of text would read more
        than with others: there text counts by a token's share of its document. Pairs are measured by their tokens.
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


def sampled_in(pieces: ContextPieces, text: OrderedText, points: Integers) -> tuple[Integers, Integers]:
    """Find which of the bytes `points` of the corpus, ascending, the pieces of contexts hold.

    Returns numbers of points, and for each the context, 0 to n - 1, both (found,). Bytes of a token are held with it.
    Tokens are read only of documents that have a point.
    """
    documents = text.documents.texts_at(pieces.positions)
    begins, ends = text.corpus_begins[documents], text.corpus_begins[documents + 1]
    holding = np.flatnonzero(np.searchsorted(points, begins) < np.searchsorted(points, ends))
    first, last = text.spans(pieces.positions[holding], pieces.starts[holding], pieces.lengths[holding])
    first, last = np.searchsorted(points, begins[holding] + first), np.searchsorted(points, begins[holding] + last)
    return ranges(first, last), np.repeat(pieces.rows[holding], last - first)


ARRAYS = tuple(field.name for field in fields(Measured))
"""Names of the arrays of `Measured`."""


@dataclass(frozen=True)
class MeasuredContexts(Measured):
    """Measures of all contexts of a packing, and the text that they are contexts of."""

    context_length: int
    """Tokens of a context."""
    ordered_bytes: int
    """Bytes of the ordered text; text that the order repeats counts as often."""
    corpus_bytes: int
    """Bytes of the training split, of which some are sampled."""

    @property
    def count(self) -> int:
        return len(self.places)


def sampled_bytes(corpus_bytes: int) -> Integers:
    """Sampled bytes of a corpus of `corpus_bytes`, ascending int64; the same for all trainings on it."""
    parts = min(SAMPLED_BYTES, corpus_bytes)
    edges = np.arange(parts + 1, dtype=np.int64) * corpus_bytes // parts
    generator = np.random.Generator(np.random.PCG64(seed_sequence(PLACES, corpus_bytes)))
    return edges[:-1] + generator.integers(0, np.diff(edges))


def readings(sampled: Integers, times: Callable[[Integers], Integers], corpus_bytes: int) -> Integers:
    """How often each of `sampled_bytes` was predicted in training that read contexts as often as `times` says, int64.

    `sampled` (found, 2) has the number of a byte and a context that holds it. Sources of pairs count too.
    """
    counts = np.zeros(min(SAMPLED_BYTES, corpus_bytes), dtype=np.int64)
    # Of several draws a byte is in a context of each.
    for start in range(0, len(sampled), SAMPLED_BYTES):
        part = sampled[start : start + SAMPLED_BYTES]
        np.add.at(counts, part[:, 0], times(part[:, 1]))
    return counts
