"""Distinct pre-tokens of a stream of texts and how often each occurs, counted by compiled kernels.

Memory is bounded by the distinct pre-tokens and one batch of texts, never by the stream.
"""

import ctypes
import queue
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from paribus.native.loader import KernelState, address, kernel, table_zeros
from paribus.tokenization.kernels import counting_layout as slot
from paribus.tokenization.kernels import layout
from paribus.tokenization.pretokenize import class_table
from paribus.tokenization.vocabulary import CODEPOINTS, utf8

_BATCH_BYTES = 4 * 2**20
_SCANNED = 2**15
"""Bytes scanned at a time; their class masks stay in the processor's cache."""
_SMALLEST_BITS, _SMALLEST_BYTES = 12, 2**16

Bytes = npt.NDArray[np.uint8]
Integers = npt.NDArray[np.int64]

utf8_of = ctypes.pythonapi.PyUnicode_AsUTF8AndSize
"""Address of a string's UTF-8; with the address of an integer, writes its size there."""
utf8_of.restype = ctypes.c_void_p
utf8_of.argtypes = (ctypes.py_object, ctypes.c_void_p)
_bytes_of = ctypes.pythonapi.PyBytes_AsString
_bytes_of.restype = ctypes.c_void_p
_bytes_of.argtypes = (ctypes.py_object,)


@dataclass(frozen=True, eq=False)
class WordCounts:
    """Distinct pre-tokens in no particular order: their UTF-8 one after another, n + 1 offsets, n counts."""

    spellings: Bytes
    offsets: Integers
    counts: Integers

    def __len__(self) -> int:
        return len(self.counts)

    def __iter__(self) -> Iterator[tuple[bytes, int]]:
        """(UTF-8, count) of each pre-token."""
        spellings, offsets = self.spellings.tobytes(), self.offsets.tolist()
        for word, count in enumerate(self.counts.tolist()):
            yield spellings[offsets[word] : offsets[word + 1]], count


def count_words(texts: Iterable[str], pattern: int, classes: Bytes, *, threads: int = 1) -> WordCounts:
    """Count the pre-tokens that `pattern` (a code of `kernels.layout`) cuts `texts` into.

    `classes` is the table of character classes, uint8 (0x110000,). Each thread has a table of its own; the counts do
    not depend on how many there are. DataError for a string that has no UTF-8.
    """
    tables = [_Table(pattern, classes) for _ in range(max(1, threads))]
    if threads > 1:
        _count_in_threads(tables, _batches(texts))
    else:
        for batch in _batches(texts):
            tables[0].count(batch)
    for table in tables[1:]:
        tables[0].add(table)
    return tables[0].words()


def sum_counts(parts: Iterable[WordCounts]) -> WordCounts:
    """Sum of the counts of parts of a corpus; one part is in memory at a time."""
    table = _Table(layout.NONE, class_table())
    for part in parts:
        table.add_words(part)
    return table.words()


class _Batch:
    """Addresses and sizes of texts, which it keeps alive; a string that is not ASCII is copied."""

    def __init__(self) -> None:
        self.addresses: list[int] = []
        self.sizes: list[int] = []
        self.texts: list[str | bytes] = []
        self.bytes = 0

    def append(self, text: str) -> None:
        encoded = text if text.isascii() else utf8(text)
        self.texts.append(encoded)
        self.addresses.append(utf8_of(encoded, None) if isinstance(encoded, str) else _bytes_of(encoded))
        self.sizes.append(len(encoded))
        self.bytes += len(encoded)


def _batches(texts: Iterable[str]) -> Iterator[_Batch]:
    batch = _Batch()
    for text in texts:
        batch.append(text)
        if batch.bytes >= _BATCH_BYTES:
            yield batch
            batch = _Batch()
    yield batch


def _count_in_threads(tables: "list[_Table]", batches: Iterator[_Batch]) -> None:
    waiting: queue.Queue[_Batch | None] = queue.Queue(len(tables))
    failed: list[BaseException] = []

    def work(table: _Table) -> None:
        while (batch := waiting.get()) is not None:
            try:
                if not failed:
                    table.count(batch)
            except BaseException as error:
                failed.append(error)

    workers = [threading.Thread(target=work, args=(table,)) for table in tables]
    for worker in workers:
        worker.start()
    try:
        for batch in batches:
            if failed:
                break
            waiting.put(batch)
    finally:
        for _ in workers:
            waiting.put(None)
        for worker in workers:
            worker.join()
    if failed:
        raise failed[0]


class _Table:
    """The counts of one thread, and the arrays of its kernel."""

    def __init__(self, pattern: int, classes: Bytes) -> None:
        self._state = state = KernelState(slot.COUNTING_SLOTS)
        state.hold(slot.CLASSES, classes)
        state.hold(slot.SCRATCH, np.zeros(64, np.uint8))
        state.hold(slot.TAIL, np.zeros(32, np.uint8))
        state.hold(slot.KEY_MASKS, key_masks())
        state.hold(slot.SHORT_KEYS, np.zeros(3 * slot.KEPT, np.uint64))
        state.hold(slot.LONG_KEYS, np.zeros(2 * slot.KEPT, np.int64))
        state.hold(slot.BYTES, np.empty(_SMALLEST_BYTES, np.uint8), slot.BYTES_SIZE)
        for name, shift in ((slot.SHORT, slot.SHORT_SHIFT), (slot.LONG, slot.LONG_SHIFT)):
            state.hold(name, table_zeros((1 << _SMALLEST_BITS, 4), np.uint64))
            state[shift] = 64 - _SMALLEST_BITS
        state[slot.PATTERN], state[slot.SCANNED] = pattern, _SCANNED
        self._set_masks(_SCANNED // 32)

    def count(self, batch: _Batch) -> None:
        state = self._state
        state.hold(slot.TEXTS, np.array(batch.addresses, np.int64), slot.TEXT_COUNT)
        state.hold(slot.SIZES, np.array(batch.sizes, np.int64))
        state.slots[[slot.TEXT, slot.BEGIN, slot.END, slot.WORD, slot.SPAN]] = 0
        while (status := kernel("count_texts")(state.address)) != slot.DONE:
            self._grow(status)

    def add(self, other: "_Table") -> None:
        other._state[slot.NEXT_SLOT] = 0
        while (status := kernel("add_counts")(self._state.address, other._state.address)) != slot.DONE:
            self._grow(status)

    def add_words(self, words: WordCounts) -> None:
        arrays = [np.ascontiguousarray(array) for array in (words.spellings, words.offsets, words.counts)]
        spellings, offsets, counts = map(address, arrays)
        self._state[slot.NEXT_SLOT] = 0
        add = kernel("add_words")
        while (status := add(self._state.address, spellings, offsets, len(words), counts)) != slot.DONE:
            self._grow(status)

    def words(self) -> WordCounts:
        state = self._state
        number = state[slot.SHORT_USED] + state[slot.LONG_USED]
        spellings = np.empty(state[slot.TOTAL_BYTES], np.uint8)
        offsets, counts = np.empty(number + 1, np.int64), np.empty(number, np.int64)
        kernel("list_words")(state.address, address(spellings), address(offsets), address(counts))
        return WordCounts(spellings, offsets, counts)

    def _grow(self, status: int) -> None:
        if status == slot.GROW_SHORT:
            double_table(self._state, slot.SHORT, slot.SHORT_SHIFT, longer=False)
        elif status == slot.GROW_LONG:
            double_table(self._state, slot.LONG, slot.LONG_SHIFT, longer=True)
        elif status == slot.GROW_BYTES:
            state = self._state
            state.enlarge(slot.BYTES, state[slot.BYTES_USED], slot.BYTES_SIZE, 2 * state[slot.WANTED])
        else:
            self._set_masks(self._state[slot.WANTED])

    def _set_masks(self, words: int) -> None:
        self._state.hold(slot.MASKS, np.empty(6 * words, np.uint64))
        self._state.hold(slot.STARTS, np.empty(words, np.uint64), slot.STRIDE)


@dataclass(frozen=True, eq=False)
class SymbolCorpus:
    """Words as units, numbered from 0. With continuation marks, unit u inside a word is `units // 2 + u`."""

    symbols: npt.NDArray[np.int32]
    """Units of each word in order, -1 before, between and after words; int32."""
    weights: Integers
    """Count of each word."""
    units: int
    """Size of the alphabet, continuation forms and units that do not occur included."""
    frequencies: Integers
    """Occurrences of each unit, shape (units,)."""

    @classmethod
    def of_bytes(cls, words: WordCounts, *, marked: bool = False) -> "SymbolCorpus":
        """Words as bytes; with `marked`, a byte inside a word is another unit than the same byte at its start."""
        corpus = cls._empty(words, len(words.spellings), 256, marked)
        kernel("lay_out_bytes")(*corpus._arguments(words), 256 * marked, *corpus._results())
        return corpus

    @classmethod
    def of_characters(
        cls, words: WordCounts, alphabet: Integers, *, others: int = 0, marked: bool = False
    ) -> "SymbolCorpus":
        """Words as characters, numbered by their place in `alphabet`, codepoints that include all of `words`.

        `others` units that do not occur follow.
        """
        single = len(alphabet) + others
        count, _ = _observe(words)
        ranks = np.full(CODEPOINTS, -1, np.int32)
        ranks[alphabet] = np.arange(len(alphabet), dtype=np.int32)
        corpus = cls._empty(words, count, single, marked)
        kernel("lay_out_characters")(*corpus._arguments(words), address(ranks), single * marked, *corpus._results())
        return corpus

    def words(self) -> tuple[npt.NDArray[np.int32], Integers]:
        """Units without separators, and where each word begins (n + 1)."""
        inside = self.symbols >= 0
        bounds = np.flatnonzero(~inside)
        return self.symbols[inside], bounds - np.arange(len(bounds))

    @classmethod
    def _empty(cls, words: WordCounts, count: int, single: int, marked: bool) -> "SymbolCorpus":
        units = single * (1 + marked)
        symbols = np.empty(count + len(words) + 1, np.int32)
        return cls(symbols, np.ascontiguousarray(words.counts), units, np.zeros(units, np.int64))

    def _arguments(self, words: WordCounts) -> tuple[int, int, int, int]:
        return address(words.spellings), address(words.offsets), len(words), address(self.weights)

    def _results(self) -> tuple[int, int]:
        return address(self.symbols), address(self.frequencies)


def observed_characters(words: WordCounts) -> Integers:
    """Codepoints of the characters of all words, in order."""
    return np.flatnonzero(_observe(words)[1])


def _observe(words: WordCounts) -> tuple[int, npt.NDArray[np.uint8]]:
    """Number of characters of all words, and 1 for each codepoint that occurs, (0x110000,)."""
    seen = np.zeros(CODEPOINTS, np.uint8)
    return kernel("observe_characters")(address(words.spellings), len(words.spellings), address(seen)), seen


def double_table(state: KernelState, name: int, shift: int, *, longer: bool) -> int:
    """Replace a table of pre-tokens, `longer` ones or short ones, by one of twice the size.

    Returns the number of its entries.
    """
    old, larger_shift = state.arrays[name], state[shift] - 1
    larger = table_zeros((1 << (64 - larger_shift), 4), np.uint64)
    state.hold(name, larger)
    state[shift] = larger_shift
    return kernel("grow_table")(address(old), len(old), address(larger), larger_shift, longer)


def key_masks() -> npt.NDArray[np.uint64]:
    """Mask of the bytes that a pre-token of each length fills, (17, 2); 0 for 16, which is every longer one."""
    filled = np.arange(16) < np.arange(17)[:, None]
    filled[16] = False
    return np.where(filled, np.uint8(0xFF), np.uint8(0)).view(np.uint64)
