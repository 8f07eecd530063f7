"""The documents in the order in which they are read, an end-of-document token after each.

Tokens are never rewritten: they are copied out of the encoded corpus, which may be memory-mapped, when they are asked
for. Memory is O(documents).
"""

import numpy as np
import numpy.typing as npt

from paribus.errors import DataError
from paribus.native.loader import address, kernel

Integers = npt.NDArray[np.int64]


class OrderedDocuments:
    """Documents by their position in an order; a document may have several positions.

    The end-of-document token counts as the last token of the document it ends.
    """

    def __init__(self, ids: npt.ArrayLike, offsets: npt.ArrayLike, order: npt.ArrayLike, eos_id: int) -> None:
        """Documents of the flat token ids `ids`, bounded by `offsets` (documents + 1,), in the order `order`.

        Ids of uint16 or uint32 stay where they are, others are copied. Raises DataError if `order` (m,) names a
        document that is not there.
        """
        self.eos_id = eos_id
        self.order: Integers = np.asarray(order, dtype=np.int64)
        """Index in the corpus of the document at each position, (m,)."""
        bounds = np.asarray(offsets, dtype=np.int64)
        _refuse_absent(self.order, len(bounds) - 1)
        given = np.asarray(ids)
        # What the compiled sums read.
        self._ids = given if given.dtype in (np.uint16, np.uint32) else given.astype(np.uint32)
        self._first = bounds[self.order]
        self.lengths: Integers = bounds[self.order + 1] - self._first + 1
        """Tokens of the document at each position, its end-of-document token included, (m,)."""
        self.tokens = int(self.lengths.sum())
        """Tokens of all positions, end-of-document tokens included."""

    def __len__(self) -> int:
        """Positions of the order."""
        return len(self.order)

    def read(self, position: int, start: int, room: Integers) -> None:
        """Fill `room` with the tokens of the document at `position` from its token `start` on.

        `room` must not be longer than what the document has from there.
        """
        first = self._first[position]
        body = self._ids[first + start : first + self.lengths[position] - 1][: len(room)]
        room[: len(body)] = body
        room[len(body) :] = self.eos_id

    def summed(self, values: Integers, positions: Integers, starts: Integers, stops: Integers) -> Integers:
        """Sums of `values` (vocabulary,) over tokens `starts[i]` to `stops[i]` of the document at `positions[i]`, (n,).

        An end-of-document token adds nothing. Raises DataError for a token that is not in the vocabulary.
        """
        first, ends = self._first[positions], self.lengths[positions] - 1
        table = np.ascontiguousarray(values, dtype=np.int64)
        begins, stops = first + np.minimum(starts, ends), first + np.minimum(stops, ends)
        sums = np.empty(len(begins), dtype=np.int64)
        spans = (address(begins), address(stops), len(begins), address(sums))
        is_wide, ids = int(self._ids.dtype.itemsize > 2), address(self._ids)
        wrong = kernel("sum_spans")(ids, ids, is_wide, address(table), len(table), *spans)
        if wrong >= 0:
            raise DataError(f"id {wrong} of the encoded corpus is {self._ids[wrong]}, and the vocabulary {len(table)}")
        return sums

    def positions_of(self, document: int) -> Integers:
        """Positions at which `document` is read, ascending."""
        return np.flatnonzero(self.order == document)


def _refuse_absent(order: Integers, documents: int) -> None:
    if order.size and (order.min() < 0 or order.max() >= documents):
        raise DataError(
            f"The order names document {order.max()} (smallest: {order.min()}), but the encoded corpus has "
            f"documents 0 to {documents - 1}: order and tokens come from different corpora"
        )
