"""Where the tokens of ordered documents lie in their text, in bytes: what no tokenizer and no packing decides."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from paribus.errors import DataError
from paribus.ordering.packing.contexts import Contexts
from paribus.ordering.packing.documents import Integers, OrderedDocuments
from paribus.ordering.packing.pieces import CONTEXTS_AT_ONCE, ContextPieces, boundaries

TOKENS_AT_ONCE = 2**20


class OrderedText:
    """The text of the documents of an order, end to end."""

    def __init__(
        self, documents: OrderedDocuments, source_bytes: npt.ArrayLike, token_byte_lengths: npt.ArrayLike
    ) -> None:
        """`source_bytes` (documents of the corpus,) are the UTF-8 bytes of each text.

        `token_byte_lengths` (vocabulary,) are those that a token stands for. DataError where an order has no text.
        """
        self.documents, self._source_bytes = documents, np.asarray(source_bytes, dtype=np.int64)
        self._lengths = np.asarray(token_byte_lengths, dtype=np.int64)
        self.begins: Integers = boundaries(self._source_bytes[documents.order])
        """Bytes of the ordered text before each position of the order, and all of them, (m + 1,)."""
        self.bytes = int(self.begins[-1])
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
        whole = self._source_bytes[self.documents.order[positions]]
        found = np.where(tokens >= self.documents.lengths[positions] - 1, whole, 0)
        inside = np.flatnonzero((tokens > 0) & (tokens < self.documents.lengths[positions] - 1))
        order = inside[np.lexsort((tokens[inside], positions[inside]))]
        bounds = np.flatnonzero(np.diff(positions[order], prepend=-1, append=-1))
        for first, last in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            places = order[first:last]
            before, total = self._token_bytes(int(positions[places[0]]), tokens[places])
            found[places] = [int(part) * int(whole[places[0]]) // max(1, total) for part in before.tolist()]
        return found

    def _token_bytes(self, position: int, tokens: Integers) -> tuple[Integers, int]:
        """Bytes that the tokens of a document before each of `tokens`, ascending, stand for, and all of them."""
        before, total = np.zeros(len(tokens), dtype=np.int64), 0
        for start, ids in self._blocks(position):
            sums = boundaries(self._lengths[ids])
            here = (tokens >= start) & (tokens < start + len(ids))
            before[here] = total + sums[tokens[here] - start]
            total += int(sums[-1])
        return before, total

    def _blocks(self, position: int) -> Iterator[tuple[int, Integers]]:
        """Tokens of a document, without its end-of-document token, in parts that memory has room for."""
        length = int(self.documents.lengths[position]) - 1
        for start in range(0, length, TOKENS_AT_ONCE):
            ids = np.empty(min(TOKENS_AT_ONCE, length - start), dtype=np.int64)
            self.documents.read(position, start, ids)
            yield start, ids

    def places(self, contexts: Contexts) -> Integers:
        """Bytes of the ordered text before the first token of each context, (count,) int64."""
        found = np.empty(contexts.count, dtype=np.int64)
        for start in range(0, contexts.count, CONTEXTS_AT_ONCE):
            stop = min(start + CONTEXTS_AT_ONCE, contexts.count)
            pieces = contexts.pieces(np.arange(start, stop, dtype=np.int64))
            first = pieces.bounds[:-1]
            positions = pieces.positions[first]
            found[start:stop] = self.begins[positions] + self.within(positions, pieces.starts[first])
        return found

    def bounds(self, pieces: ContextPieces) -> tuple[Integers, Integers]:
        """Bytes of the ordered text before the first token of each piece and before the one after it, both (p,)."""
        begins = self.begins[pieces.positions]
        first = self.within(pieces.positions, pieces.starts)
        return begins + first, begins + self.within(pieces.positions, pieces.starts + pieces.lengths)
