"""Where the tokens of ordered documents lie in their text, in bytes: what no tokenizer and no packing decides."""

import numpy as np
import numpy.typing as npt

from paribus.errors import DataError
from paribus.ordering.packing.documents import Integers, OrderedDocuments
from paribus.ordering.packing.pieces import ContextPieces, boundaries


class OrderedText:
    """The text of the documents of an order, end to end."""

    def __init__(
        self, documents: OrderedDocuments, source_bytes: npt.ArrayLike, token_byte_lengths: npt.ArrayLike
    ) -> None:
        """`source_bytes` (documents of the corpus,) are the UTF-8 bytes of each text, in every draw of its tokens.

        `token_byte_lengths` (vocabulary,) are those that a token stands for. DataError where an order has no text.
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
        tokenizer, by their share of all of them.
        """
        whole = self._source_bytes[self.documents.texts_at(positions)]
        ends = self.documents.lengths_at(positions) - 1
        found = np.where(tokens >= ends, whole, 0)
        inside = np.flatnonzero((tokens > 0) & (tokens < ends))
        if len(inside):
            found[inside] = self._inside(positions[inside], tokens[inside], whole[inside])
        return found

    def _inside(self, positions: Integers, tokens: Integers, whole: Integers) -> Integers:
        """As `within`, of tokens that are neither the first nor the end of their documents, of `whole` bytes each.

        A document is read once, from cut to cut, however many of the tokens are in it.
        """
        order = np.lexsort((tokens, positions))
        at, cuts = positions[order], tokens[order]
        first = np.flatnonzero(np.diff(at, prepend=-1))
        sizes = np.diff(first, append=len(at))
        before = np.concatenate([[0], cuts[:-1]])
        before[first] = 0
        sums = boundaries(self.documents.summed(self.token_byte_lengths, at, before, cuts))
        parts = sums[1:] - np.repeat(sums[first], sizes)
        last = first + sizes - 1
        ends = self.documents.lengths_at(at[last]) - 1
        rests = self.documents.summed(self.token_byte_lengths, at[last], cuts[last], ends)
        found = np.empty_like(parts)
        found[order] = _shares(parts, np.repeat(parts[last] + rests, sizes), whole[order])
        return found

    def _begins_at(self, positions: Integers) -> Integers:
        """Bytes of the ordered text before each of `positions`, (n,)."""
        draws, places = np.divmod(positions, len(self.documents.order))
        begins: Integers = self._begins[places] + draws * self._begins[-1]
        return begins

    def extents(self, pieces: ContextPieces) -> tuple[Integers, Integers]:
        """Bytes of the ordered text before the first token of each context, and before that after its last.

        Both (contexts,).
        """
        first, last = pieces.bounds[:-1], pieces.bounds[1:] - 1
        positions = np.concatenate([pieces.positions[first], pieces.positions[last]])
        tokens = np.concatenate([pieces.starts[first], pieces.starts[last] + pieces.lengths[last]])
        # Where a context ends, the next one begins: together, their document is read once.
        places, ends = np.split(self._begins_at(positions) + self.within(positions, tokens), 2)
        return places, ends

    def spans(self, positions: Integers, starts: Integers, lengths: Integers) -> tuple[Integers, Integers]:
        """Bytes of their documents before some pieces of documents, and before what follows them, both (n,)."""
        begins, ends = np.split(self.within(np.tile(positions, 2), np.concatenate([starts, starts + lengths])), 2)
        return begins, ends


def _shares(parts: Integers, totals: Integers, whole: Integers) -> Integers:
    """`parts` · `whole` // `totals`, where a total is none 0."""
    found = parts.copy()
    unlike = np.flatnonzero(totals != whole)
    # The product of two sizes of a document has more than 64 bits where it is of gigabytes.
    products = parts[unlike].astype(object) * whole[unlike] // np.maximum(totals[unlike], 1)
    found[unlike] = products.astype(np.int64)
    return found
