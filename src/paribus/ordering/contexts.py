"""Contexts of fixed length cut out of the ordered documents.

The documents are never rewritten: a context is gathered from the encoded corpus when it is asked for. Contexts are
numbered along the stream; their order in training is `shuffle.permute`'s.
"""

import numpy as np
import numpy.typing as npt

from paribus.errors import DataError

CONTEXTS_AT_ONCE = 1024


class PackedStream:
    """The concatenation of documents in an order, an end-of-document token after each, cut into contexts.

    Context c reads tokens c·L to c·L + L and predicts tokens c·L + 1 to c·L + L + 1, so every token but the stream's
    first is predicted once. An end shorter than a context is left out. Seeking costs O(log documents), and memory is
    O(documents): `ids` may be memory-mapped.
    """

    def __init__(
        self, ids: npt.ArrayLike, offsets: npt.ArrayLike, order: npt.ArrayLike, eod_id: int, context_length: int
    ) -> None:
        """Contexts of `context_length` tokens.

        `ids` is the flat array of token ids in corpus order, `offsets` (documents + 1,) its document boundaries,
        `order` any sequence of document indices (repeats allowed), `eod_id` the end-of-document token.

        Raises DataError if the stream is shorter than one context or `order` names a document that is not there.
        """
        self._ids, self._eod, self.context_length = np.asanyarray(ids), eod_id, context_length
        bounds, documents = np.asarray(offsets, dtype=np.int64), np.asarray(order, dtype=np.int64)
        if documents.size and (documents.min() < 0 or documents.max() >= len(bounds) - 1):
            raise DataError(
                f"The order names document {documents.max()} (smallest: {documents.min()}), but the encoded corpus has "
                f"documents 0 to {len(bounds) - 2}: order and tokens come from different corpora"
            )
        self._first, self._last = bounds[documents], bounds[documents + 1]
        self._starts = np.zeros(len(documents) + 1, dtype=np.int64)
        np.cumsum(self._last - self._first + 1, out=self._starts[1:])
        self._refuse_too_small()

    def _refuse_too_small(self) -> None:
        if self.count < 1:
            raise DataError(
                f"The corpus is smaller than one context: {len(self._first)} documents give {self.tokens} tokens "
                f"(end-of-document tokens included), and `model.context_length` = {self.context_length} needs "
                f"{self.context_length + 1}. Set model.context_length to {max(self.tokens - 1, 1)} or less, or give "
                "more text"
            )

    @property
    def tokens(self) -> int:
        """Tokens of the whole stream, end-of-document tokens included."""
        return int(self._starts[-1])

    @property
    def count(self) -> int:
        """Contexts in one pass over the stream."""
        return max(self.tokens - 1, 0) // self.context_length

    def context(self, index: int) -> npt.NDArray[np.int64]:
        """Tokens [c·L, c·L + L + 1) of context c = `index`, (context_length + 1,) int64.

        The first L are the inputs, the last L the targets. Raises IndexError for an index outside range(count).
        """
        if not 0 <= index < self.count:
            raise IndexError(f"context {index} is not in range({self.count})")
        start = int(index) * self.context_length
        tokens = np.empty(self.context_length + 1, dtype=np.int64)
        document = int(np.searchsorted(self._starts, start, side="right")) - 1
        filled = 0
        while filled < len(tokens):
            filled += self._copy(document, start + filled - int(self._starts[document]), tokens[filled:])
            document += 1
        return tokens

    def _copy(self, document: int, skip: int, room: npt.NDArray[np.int64]) -> int:
        """Fill `room` with the document's tokens and its end, from token `skip` on; the number of tokens written."""
        body = self._ids[self._first[document] + skip : self._last[document]][: len(room)]
        room[: len(body)] = body
        if len(body) == len(room):
            return len(body)
        room[len(body)] = self._eod
        return len(body) + 1

    def contexts(self, indices: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """The contexts of (n,) `indices`, (n, context_length + 1) int64."""
        chosen = np.asarray(indices, dtype=np.int64)
        rows = np.empty((len(chosen), self.context_length + 1), dtype=np.int64)
        for row, index in zip(rows, chosen.tolist(), strict=True):
            row[:] = self.context(index)
        return rows

    def source_bytes(self, token_byte_lengths: npt.ArrayLike, indices: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Bytes of source text that the targets of each context cover, (n,) int64.

        `token_byte_lengths` (vocabulary,) gives the bytes a token stands for; an end-of-document token stands for none.
        """
        lengths = np.array(token_byte_lengths, dtype=np.int64)
        lengths[self._eod] = 0
        chosen = np.asarray(indices, dtype=np.int64)
        covered = np.empty(len(chosen), dtype=np.int64)
        for start in range(0, len(chosen), CONTEXTS_AT_ONCE):
            part = slice(start, start + CONTEXTS_AT_ONCE)
            covered[part] = lengths[self.contexts(chosen[part])[:, 1:]].sum(axis=1)
        return covered
