"""Packings: contexts of one length made of ordered documents, whose tokens are read when they are asked for."""

import mmap
import resource
from abc import ABC, abstractmethod
from bisect import bisect_left, insort
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from paribus.errors import DataError
from paribus.native.loader import address, kernel
from paribus.ordering.arrays import boundaries

NO_TARGET = -1


Integers = npt.NDArray[np.int64]
CONTEXTS_AT_ONCE = 65_536
"""Contexts whose pieces are computed together, so that memory is bounded however many there are."""
SAMPLED = 16
"""Elements that `expect_absent` probes at most."""


@dataclass(frozen=True)
class ContextPieces:
    """The pieces of n contexts, context by context, within a context in the sequence of the order.

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
        """(pieces,) bool: true if a piece's first token does not follow from the token before it in the context.

        Such a piece begins within its document, and not at the begin of the context.
        """
        return (self.starts > 0) & (self.columns > 0)

    @property
    def targets(self) -> Integers:
        """Tokens that each context predicts: those that follow from one before them in it, (n,)."""
        return self.summed(self.lengths - self.unpredicted) - 1 + self.lead

    def summed(self, values: np.ndarray) -> Integers:
        """Sums over the pieces of each context of one value a piece, (n,)."""
        return np.diff(boundaries(values)[self.bounds])

    def of(self, contexts: Integers) -> "ContextPieces":
        """The pieces of the contexts with the numbers `contexts`, in that sequence."""
        first, last = self.bounds[contexts], self.bounds[contexts + 1]
        chosen = ranges(first, last)
        return ContextPieces(
            self.positions[chosen], self.starts[chosen], self.lengths[chosen], boundaries(last - first), self.lead
        )


# Tokens are copied out of the encoded corpus, which may be memory-mapped, when they are asked for. Bounds of documents
# are looked up when they are needed and not stored, as several draws have as many more.
class OrderedDocuments:
    """Documents by their position in an order; a document may have several positions.

    The end-of-document token counts as the last token of the document it ends. Where the tokens of all documents were
    drawn several times, the order is repeated for each draw: draw d of the i-th of m is at position d · m + i.
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
        documents = self._in_corpus = (len(self._bounds) - 1) // draws
        if self.order.size and (self.order.min() < 0 or self.order.max() >= documents):
            raise DataError(
                f"The order names document {self.order.max()} (smallest: {self.order.min()}), but the encoded corpus "
                f"has documents 0 to {documents - 1}: order and tokens come from different corpora"
            )
        flat_ids = np.asarray(ids)
        # The compiled sums read these two types.
        self._ids = flat_ids if flat_ids.dtype in (np.uint16, np.uint32) else flat_ids.astype(np.uint32)
        self._readahead = Readahead(self._ids)

    def __len__(self) -> int:
        return self.draws * len(self.order)

    @property
    def lengths(self) -> Integers:
        """Tokens of the document at each position, its end-of-document token included, (positions,); computed anew.

        All bounds are read in sequence, since looking up those of 100 million documents in a file takes minutes.
        """
        lengths = np.diff(self._bounds) + 1
        numbers = self.order if self.draws == 1 else self.numbers_at(np.arange(len(self), dtype=np.int64))
        ordered: Integers = lengths[numbers]
        return ordered

    def texts_at(self, positions: Integers) -> Integers:
        """Indices in the corpus of the documents at `positions`, whatever their draw, (n,)."""
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

        A room must not be longer than the rest of its document.
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
        """Begin and end in the flat ids of the documents at `positions`, without end-of-document tokens, both (n,)."""
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


# A context is a row of at most L + 1 tokens, L the context length: the first L are its inputs, each predicts the one
# after it. A shorter row is padded at its end with end-of-document tokens, which predict nothing and which no token
# before them can attend to. Every context predicts at least one token.
class Contexts(ABC):
    """Contexts of `context_length` tokens, numbered from 0 along the order of the documents.

    Every method that takes (n,) context `indices`, in any sequence and with repeats, raises IndexError for one outside
    range(count).
    """

    full: bool
    """True if every context predicts `context_length` tokens, so that none is padded."""

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

    def pieces(self, indices: npt.ArrayLike) -> ContextPieces:
        """The pieces of documents that contexts hold."""
        chosen = np.asarray(indices, dtype=np.int64)
        if chosen.size and (chosen.min() < 0 or chosen.max() >= self.count):
            raise IndexError(f"contexts {chosen.min()} to {chosen.max()} are not in range({self.count})")
        return self._pieces(chosen)

    def target_pieces(self, indices: npt.ArrayLike) -> ContextPieces:
        """The pieces of contexts without the tokens that no token before them in the context predicts."""
        pieces = self.pieces(indices)
        unpredicted = pieces.unpredicted
        unpredicted[pieces.bounds[:-1]] |= not pieces.lead
        return ContextPieces(pieces.positions, pieces.starts + unpredicted, pieces.lengths - unpredicted, pieces.bounds)

    def predicted(self, indices: npt.ArrayLike) -> ContextPieces:
        """The pieces of contexts that a model learns from: the targets and, of rows with a source, the source."""
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


class PackedStream(Contexts):
    """The concatenation of the documents, cut into contexts.

    Context c reads tokens c·L to c·L + L and predicts tokens c·L + 1 to c·L + L + 1, so every token but the stream's
    first is predicted once. An end shorter than a context is left out. Seeking costs O(log documents).

    With groups each context begins where a group does, and reads on until it is full, into the groups that follow if
    its own is short. The next one begins with the first group that begins neither within its own group nor within the
    context. All other tokens are left out.
    """

    full = True

    def __init__(self, documents: OrderedDocuments, context_length: int, groups: Integers | None = None) -> None:
        """`groups` (g + 1,) are the positions of the order at which groups begin, and its end."""
        super().__init__(documents, context_length)
        self._starts = boundaries(documents.lengths)
        self._total = int(self._starts[-1])
        self._begins = None if groups is None else _group_begins(self._starts[groups], context_length)
        """Tokens of the stream before each context of groups."""

    @property
    def count(self) -> int:
        return max(self._total - 1, 0) // self.context_length if self._begins is None else len(self._begins)

    @property
    def left_out_tokens(self) -> int:
        """Tokens between contexts and behind the last one."""
        if self._begins is None:
            shared = max(0, self.count - 1)
        else:
            shared = int(np.count_nonzero(np.diff(self._begins) == self.context_length))
        return self._total - self.count * (self.context_length + 1) + shared

    def _pieces(self, indices: Integers) -> ContextPieces:
        begins = indices * self.context_length if self._begins is None else self._begins[indices]
        ends = begins + self.context_length + 1
        first = np.searchsorted(self._starts, begins, side="right") - 1
        last = np.searchsorted(self._starts, ends)
        positions, pieces = ranges(first, last), last - first
        start = self._starts[positions]
        lower = np.maximum(np.repeat(begins, pieces), start)
        upper = np.minimum(np.repeat(ends, pieces), self._starts[positions + 1])
        return ContextPieces(positions, lower - start, upper - lower, boundaries(pieces))


def _group_begins(bounds: Integers, context_length: int) -> Integers:
    """Begins of contexts in a stream; `bounds` are the begins of its groups and its end."""
    begins, ends = bounds[:-1], bounds[1:]
    following = np.searchsorted(begins, np.maximum(ends, begins + context_length)).tolist()
    fitting = int(np.searchsorted(begins, bounds[-1] - context_length))
    chosen, group = [], 0
    while group < fitting:
        chosen.append(group)
        group = following[group]
    return begins[np.array(chosen, dtype=np.int64)]


class AssignedContexts(Contexts):
    """Contexts that pieces were assigned to, in the sequence of their first pieces; memory is O(pieces).

    Each begins with an end-of-document token, as documents do where they are scored. It is an input and no target, and
    leaves room for `context_length` tokens of documents, all of which can be targets.
    """

    full = False
    left_out_tokens = 0

    def __init__(self, documents: OrderedDocuments, context_length: int, pieces: ContextPieces) -> None:
        super().__init__(documents, context_length)
        self.all_pieces = replace(pieces, lead=1)

    @classmethod
    def together(
        cls, documents: OrderedDocuments, context_length: int, pieces: ContextPieces, assigned: Integers
    ) -> Self:
        """Contexts of `pieces`, given document by document; those of one number in `assigned` (pieces,) share one."""
        _, first, number, sizes = np.unique(assigned, return_index=True, return_inverse=True, return_counts=True)
        sequence = np.argsort(first)
        rank = np.empty_like(sequence)
        rank[sequence] = np.arange(len(sequence))
        order = np.argsort(rank[number], kind="stable")
        columns = (pieces.positions[order], pieces.starts[order], pieces.lengths[order], boundaries(sizes[sequence]))
        return cls(documents, context_length, ContextPieces(*columns))

    @property
    def count(self) -> int:
        return len(self.all_pieces.bounds) - 1

    def _pieces(self, indices: Integers) -> ContextPieces:
        return self.all_pieces.of(indices)


# Best-fit-decreasing bin packing (Ding et al., "Fewer Truncations Improve Language Modeling", arXiv 2404.10830,
# section 3). It is done within windows of consecutive documents, so that documents near each other in the order stay
# near each other; the paper's is one window of all.
def best_fit(documents: OrderedDocuments, context_length: int, window: int | None) -> AssignedContexts:
    """Contexts of whole documents, `window` consecutive ones at a time (None: all).

    A document longer than a context is first cut into pieces of a whole context and a rest. Within a context pieces
    are in the sequence of the order.
    """
    pieces = cut(documents.lengths, context_length)
    first = np.arange(0, len(documents), window or max(1, len(documents)))
    bounds = [*pieces.bounds[first].tolist(), len(pieces.positions)]
    assigned = np.empty_like(pieces.positions)
    for begin, end in pairwise(bounds):
        # A window has no more contexts than pieces, so no two windows share a number.
        assigned[begin:end] = begin + best_fit_decreasing(pieces.lengths[begin:end], context_length)
    return AssignedContexts.together(documents, context_length, pieces, assigned)


def best_fit_decreasing(lengths: Integers, capacity: int) -> Integers:
    """The bin, 0, 1, ..., of each of (n,) items of `lengths`, none longer than `capacity`.

    The longest item first, and items of one length in sequence, goes into the bin with the least room that suffices, of
    equal ones into the bin that got that room last, else into a new bin. O(n log capacity): `rooms` holds the distinct
    rooms of bins, ascending, as the paper's segment tree does.
    """
    sequence = np.argsort(-lengths, kind="stable")
    assigned = np.empty(len(lengths), dtype=np.int64)
    rooms: list[int] = []
    bins_with: dict[int, list[int]] = {}
    bins = 0
    for item, length in zip(sequence.tolist(), lengths[sequence].tolist(), strict=True):
        place = bisect_left(rooms, length)
        if place < len(rooms):
            room = rooms[place]
            chosen = bins_with[room].pop()
            if not bins_with[room]:
                del rooms[place], bins_with[room]
        else:
            chosen, room = bins, capacity
            bins += 1
        assigned[item] = chosen
        remaining = room - length
        if remaining in bins_with:
            bins_with[remaining].append(chosen)
        elif remaining:
            bins_with[remaining] = [chosen]
            insort(rooms, remaining)
    return assigned


def one_document(documents: OrderedDocuments, context_length: int) -> AssignedContexts:
    """One context per document, several for a longer one."""
    pieces = cut(documents.lengths, context_length)
    return AssignedContexts.together(documents, context_length, pieces, np.arange(len(pieces.positions)))


def ranges(first: Integers, last: Integers) -> Integers:
    """The concatenation of range(first[i], last[i]) for every i."""
    bounds = boundaries(last - first)
    return np.arange(bounds[-1]) + np.repeat(first - bounds[:-1], last - first)


def cut(lengths: Integers, room: int) -> ContextPieces:
    """The pieces of documents of `lengths` (m,) tokens: context i of the result is the document at position i.

    A document of at most `room` tokens is one piece. A longer one is cut into pieces of that many tokens, each of which
    begins with the last token of the one before, so that all other tokens are predicted once; the last piece has the
    rest, at least two tokens.
    """
    counts = np.maximum(1, -(-(lengths - 1) // (room - 1)))
    positions = np.repeat(np.arange(len(lengths)), counts)
    starts = ranges(np.zeros_like(counts), counts) * (room - 1)
    return ContextPieces(positions, starts, np.minimum(lengths[positions] - starts, room), boundaries(counts))


# Each part of a file that is not in memory is waited for, some milliseconds; a batch of documents in random order has
# thousands of them.
class Readahead:
    """Readahead of a one-dimensional memory-mapped array; does nothing for other arrays."""

    def __init__(self, array: npt.NDArray[Any]) -> None:
        self._array = array
        self._mapped = _mapped(array) if hasattr(mmap, "MADV_WILLNEED") and array.flags.c_contiguous else None
        self._size = array.itemsize
        self._offset = 0
        """Bytes of the mapping before the array."""
        if self._mapped is not None:
            self._offset = address(array) - address(np.frombuffer(self._mapped, dtype=np.uint8))

    def expect(self, begins: Integers, stops: Integers) -> None:
        """Start to read elements `begins[i]` to `stops[i]`, both (n,), without waiting for them."""
        if self._mapped is None:
            return
        first = (self._offset + begins * self._size) // mmap.PAGESIZE * mmap.PAGESIZE
        sizes = self._offset + stops * self._size - first
        filled = stops > begins
        # Reading ahead may fail: the read itself comes later, and reports errors of a disk and wrong places.
        with suppress(OSError, ValueError):
            for start, size in zip(first[filled].tolist(), sizes[filled].tolist(), strict=True):
                self._mapped.madvise(mmap.MADV_WILLNEED, start, size)

    def expect_absent(self, begins: Integers, stops: Integers) -> None:
        """Call `expect`, unless all of a sample is in memory: to ask for what is in memory costs half of reading it."""
        if self._mapped is None or not len(begins):
            return
        sample = begins[stops > begins]
        if self._waits_for(sample[:: max(1, -(-len(sample) // SAMPLED))]):
            self.expect(begins, stops)

    def _waits_for(self, elements: Integers) -> bool:
        """True if reading the elements waits for a disk."""
        before = _waits()
        np.asarray(self._array)[elements]
        return _waits() > before


def _waits() -> int:
    """Major page faults of this thread, or of its process where those of a thread are not known."""
    return resource.getrusage(getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF)).ru_majflt


def _mapped(array: Any) -> mmap.mmap | None:
    """The memory map that an array is a view of, or None."""
    while isinstance(array, np.ndarray):
        array = array.base
    return array if isinstance(array, mmap.mmap) else None
