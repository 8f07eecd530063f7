"""The documents in the order in which they are read, an end-of-document token after each.

Tokens are never rewritten: they are copied out of the encoded corpus, which may be memory-mapped, when they are asked
for. Nothing is kept a document, whose bounds are looked up where they are needed: of many draws they would be many.
"""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from paribus.errors import DataError
from paribus.native.loader import address, kernel
from paribus.ordering.readahead import Readahead

Integers = npt.NDArray[np.int64]


class OrderedDocuments:
    """Documents by their position in an order; a document may have several positions.

    The end-of-document token counts as the last token of the document it ends. Where the tokens of all documents were
    drawn several times, the order is gone through once a draw: draw d of what is i-th of m is at position d · m + i.
    """

    def __init__(
        self, ids: npt.ArrayLike, offsets: npt.ArrayLike, order: npt.ArrayLike, eos_id: int, draws: int = 1
    ) -> None:
        """Documents of the flat token ids `ids`, bounded by `offsets` (draws · documents + 1,), in the order `order`.

        Ids of uint16 or uint32 stay where they are, others are copied. Raises DataError if `order` (m,) names a
        document that is not there.
        """
        self.eos_id, self.draws = eos_id, draws
        self.order: Integers = np.asarray(order, dtype=np.int64)
        """Index in the corpus of the document at each position of one draw, (m,)."""
        self._bounds: Integers = np.asarray(offsets, dtype=np.int64)
        self._in_corpus = (len(self._bounds) - 1) // draws
        _refuse_absent(self.order, self._in_corpus)
        given = np.asarray(ids)
        # What the compiled sums read.
        self._ids = given if given.dtype in (np.uint16, np.uint32) else given.astype(np.uint32)
        self._readahead = Readahead(self._ids)

    def __len__(self) -> int:
        """Positions of all draws."""
        return self.draws * len(self.order)

    @property
    def lengths(self) -> Integers:
        """Tokens of the document at each position, its end-of-document token included, (positions,); made anew.

        Bounds are read from the first to the last, since to look up those of 100 million documents in a file takes
        minutes.
        """
        lengths = np.diff(self._bounds) + 1
        numbers = self.order if self.draws == 1 else self.numbers_at(np.arange(len(self), dtype=np.int64))
        found: Integers = lengths[numbers]
        return found

    def texts_at(self, positions: Integers) -> Integers:
        """Indices in the corpus of the documents at `positions`, whichever their draw, (n,)."""
        texts: Integers = self.order[positions if self.draws == 1 else positions % len(self.order)]
        return texts

    def numbers_at(self, positions: Integers) -> Integers:
        """Numbers in `offsets`, draw after draw, of the documents at `positions`, (n,)."""
        if self.draws == 1:
            return self.texts_at(positions)
        draws, places = np.divmod(positions, len(self.order))
        numbers: Integers = self.order[places] + draws * self._in_corpus
        return numbers

    def lengths_at(self, positions: Integers) -> Integers:
        """Tokens of the documents at `positions`, their end-of-document tokens included, (n,)."""
        first, ends = self._spans(positions)
        return ends - first + 1

    def read(self, positions: Integers, starts: Integers, rooms: Iterable[Integers]) -> None:
        """Fill room i of `rooms` with the tokens of the document at `positions[i]` from its token `starts[i]` on.

        A room must not be longer than what its document has from there.
        """
        first, ends = self._spans(positions)
        rooms = list(rooms)
        begins = first + starts
        stops = begins + np.fromiter(map(len, rooms), dtype=np.int64, count=len(rooms))
        self._readahead.expect(begins, np.minimum(stops, ends))
        for begin, end, room in zip(begins.tolist(), ends.tolist(), rooms, strict=True):
            body = self._ids[begin : min(end, begin + len(room))]
            room[: len(body)] = body
            room[len(body) :] = self.eos_id

    def _spans(self, positions: Integers) -> tuple[Integers, Integers]:
        """Places in the flat ids at which documents begin and end, their end-of-document tokens left out, both (n,)."""
        numbers = self.numbers_at(positions)
        return self._bounds[numbers], self._bounds[numbers + 1]

    def summed(self, values: Integers, positions: Integers, starts: Integers, stops: Integers) -> Integers:
        """Sums of `values` (vocabulary,) over tokens `starts[i]` to `stops[i]` of the document at `positions[i]`, (n,).

        An end-of-document token adds nothing. Raises DataError for a token that is not in the vocabulary.
        """
        first, ends = self._spans(positions)
        table = np.ascontiguousarray(values, dtype=np.int64)
        begins, stops = np.minimum(first + starts, ends), np.minimum(first + stops, ends)
        self._readahead.expect_absent(begins, stops)
        sums = np.empty(len(begins), dtype=np.int64)
        spans = (address(begins), address(stops), len(begins), address(sums))
        is_wide, ids = int(self._ids.dtype.itemsize > 2), address(self._ids)
        wrong = kernel("sum_spans")(ids, ids, is_wide, address(table), len(table), *spans)
        if wrong >= 0:
            raise DataError(f"id {wrong} of the encoded corpus is {self._ids[wrong]}, and the vocabulary {len(table)}")
        return sums

    def positions_of(self, document: int) -> Integers:
        """Positions at which `document` is read in any draw, ascending."""
        places = np.flatnonzero(self.order == document)
        return (np.arange(self.draws, dtype=np.int64)[:, None] * len(self.order) + places).reshape(-1)


def _refuse_absent(order: Integers, documents: int) -> None:
    if order.size and (order.min() < 0 or order.max() >= documents):
        raise DataError(
            f"The order names document {order.max()} (smallest: {order.min()}), but the encoded corpus has "
            f"documents 0 to {documents - 1}: order and tokens come from different corpora"
        )
