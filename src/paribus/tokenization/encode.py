"""Text to ids with compiled kernels: one workspace per thread, documents shared among threads by bytes."""

import ctypes
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from paribus.errors import DataError
from paribus.native.loader import KernelState, address, kernel, table_zeros
from paribus.tokenization.counts import double_table, key_masks, utf8_of
from paribus.tokenization.kernels import layout
from paribus.tokenization.pretokenize import Pretokenizer
from paribus.tokenization.settings import Settings
from paribus.tokenization.tables import EncodingTables, check_servable
from paribus.tokenization.vocabulary import UNIT, Vocabulary, utf8

if TYPE_CHECKING:
    import pyarrow as pa


Int64s = npt.NDArray[np.int64]
Ids = npt.NDArray[np.int32]
_SMALLEST, _LARGEST_SHORT, _LARGEST_LONG = 12, 22, 18
"""Binary logarithm of the slots of a table: at first, and at most for short and for longer pre-tokens.

A full table of the largest size remembers nothing more. Per thread, the largest take 128 MiB and 8 MiB, and the bytes
of longer pre-tokens at most 40 MiB.
"""
_ROOM = 64
_UNIT_WORDS = 8
_TABLES = (layout.SHORT, layout.SHORT_SHIFT, layout.SHORT_FREE), (layout.LONG, layout.LONG_SHIFT, layout.LONG_FREE)
EncodeTexts = Callable[[slice], tuple[Ids, Int64s]]
"""Ids of a slice of the texts and where each ends; RefusedTextError has an index within the slice."""
_SMALLEST_BLOCK, _LARGEST_BLOCK = 1 << 18, 1 << 22
_BLOCKS_A_THREAD = 8
_UTF8_OF = ctypes.cast(utf8_of, ctypes.c_void_p).value or 0


class Workspace:
    """The memo and scratch memory of one thread for one tokenizer. Ids never depend on the memo."""

    def __init__(self, model: npt.NDArray[np.int64]) -> None:
        self._model = model
        self._state = KernelState(layout.MEMO_SLOTS)
        self._slots, self._hold = self._state.slots, self._state.hold
        self._model_address, self._slots_address = address(model), self._state.address
        self._encode = kernel("encode_documents")
        for slot, shift, free in _TABLES:
            self._hold(slot, table_zeros((1 << _SMALLEST, 4), np.uint64))
            self._slots[shift], self._slots[free] = 64 - _SMALLEST, 5 << (_SMALLEST - 3)
        self._hold(layout.BYTES, np.empty(1 << 16, dtype=np.uint8), layout.BYTES_SIZE)
        self._hold(layout.IDS, np.empty(1 << 14, dtype=np.int32), layout.IDS_SIZE)
        self._hold(layout.SCRATCH, np.empty(64, dtype=np.uint8))
        self._hold(layout.POSITIONS, np.empty(layout.CHUNK + 130, dtype=np.int64))
        self._hold(layout.KEYS, np.empty(3 * (layout.CHUNK + 130), dtype=np.uint64))
        self._hold(layout.TAIL, np.zeros(32, dtype=np.uint8))
        self._hold(layout.KEY_MASKS, key_masks())
        self._single = np.zeros(3, dtype=np.int64)
        """Address, size and end of the ids of the text of `encode_one`."""
        self._single_address = address(self._single)
        self._longest = -1
        self._make_room(1024)

    def encode(self, addresses: Int64s, sizes: Int64s) -> tuple[Ids, Int64s]:
        """Ids of n texts, flat, and where each ends (n,).

        Raises RefusedTextError for a character that is not in the alphabet and may not be replaced.
        """
        total = int(sizes.sum())
        ends = np.empty(len(sizes), dtype=np.int64)
        self._make_room(int(sizes.max(initial=0)))
        output = np.empty(total // 3 + self._longest + _ROOM, dtype=np.int32)
        arguments = (address(addresses), address(sizes), len(sizes), self._model_address, self._slots_address)
        self._slots[layout.NEXT] = self._slots[layout.WRITTEN] = 0
        while True:
            self._slots[layout.OUTPUT_SIZE] = len(output)
            status = self._encode(*arguments, address(output), address(ends))
            written = int(self._slots[layout.WRITTEN])
            if status == layout.DONE:
                return output[:written], ends
            if status == layout.GROW_OUTPUT:
                larger = np.empty(max(2 * len(output), written + self._longest + _ROOM), dtype=np.int32)
                larger[:written] = output[:written]
                output = larger
            else:
                self._grow(status)

    def encode_one(self, text: str) -> Ids:
        """Ids of one text, as `encode` gives them, with less overhead."""
        slots, single, single_address = self._slots, self._single, self._single_address
        size = ctypes.c_ssize_t()
        try:
            single[0] = utf8_of(text, ctypes.addressof(size))
        except UnicodeEncodeError:
            utf8(text)
            raise
        single[1] = size.value
        self._make_room(size.value)
        while True:
            slots[layout.NEXT] = slots[layout.WRITTEN] = 0
            slots[layout.OUTPUT_SIZE] = len(self._single_ids)
            status = self._encode(
                single_address, single_address + 8, 1, self._model_address, self._slots_address,
                self._single_ids_address, single_address + 16,
            )  # fmt: skip
            if status == layout.DONE:
                return self._single_ids[: single[2]].copy()
            self._grow(status)

    def _make_room(self, longest: int) -> None:
        """Have scratch memory for a text of `longest` bytes."""
        if longest <= self._longest:
            return
        self._longest = longest = max(longest, 2 * self._longest)
        stride = (longest >> 6) + 2
        self._slots[layout.STRIDE] = stride
        self._hold(layout.MASKS, np.empty(6 * stride, dtype=np.uint64))
        self._hold(layout.STARTS, np.empty(stride, dtype=np.uint64))
        self._hold(layout.UNITS, np.empty(longest + _ROOM, dtype=np.int32))
        self._hold(layout.RESULT, np.empty(longest + _ROOM, dtype=np.int32))
        self._single_ids: Ids = np.empty(longest + _ROOM, dtype=np.int32)
        self._single_ids_address = address(self._single_ids)
        self._hold(layout.WORK, np.empty(_UNIT_WORDS * (longest + _ROOM), dtype=np.int64))

    def _grow(self, status: int) -> None:
        if status == layout.REFUSED:
            raise RefusedTextError(int(self._slots[layout.NEXT]))
        if status == layout.GROW_BYTES:
            self._double(layout.BYTES, layout.BYTES_SIZE)
        elif status == layout.GROW_IDS:
            self._double(layout.IDS, layout.IDS_SIZE)
        else:
            self._grow_table(status == layout.GROW_LONG)

    def _double(self, slot: int, size: int) -> None:
        self._state.enlarge(slot, self._state[size], size, 2 * self._state[size])

    def _grow_table(self, longer: bool) -> None:
        slot, shift, free = _TABLES[longer]
        bits = 64 - self._state[shift]
        if bits >= (_LARGEST_LONG if longer else _LARGEST_SHORT):
            self._slots[free] = -1
        else:
            self._slots[free] = (5 << (bits - 2)) - double_table(self._state, slot, shift, longer=longer)


class Encoding:
    """Encoding with one vocabulary and encoder; threads may share it.

    Raises ConfigurationError where the vocabulary cannot serve the encoder.
    """

    def __init__(self, vocabulary: Vocabulary, settings: Settings, cutter: Pretokenizer | None) -> None:
        check_servable(vocabulary, settings)
        self._cutter = cutter
        self._vocabulary = vocabulary
        self._tables = EncodingTables(vocabulary, settings)
        self._local = threading.local()
        self._pool: list[Workspace] = []

    def encode(self, text: str) -> Ids:
        """Ids of one text."""
        if self._cutter is not None:
            return self._encode_cut([text], self._cutter, 1)[0]
        try:
            return self._workspace().encode_one(text)
        except RefusedTextError as error:
            raise self._refusal(text) from error

    def encode_bytes(self, data: bytes) -> Ids:
        """Ids of bytes, UTF-8 or not."""
        source = np.frombuffer(data, dtype=np.uint8)
        place = np.array([address(source) if len(data) else 0, len(data)], dtype=np.int64)
        return self._encode_at(place[:1], place[1:], 1, lambda _: data.decode("utf-8", "replace"))[0]

    def encode_batch(self, texts: list[str], threads: int) -> tuple[Ids, Int64s]:
        """Flat ids of texts and their offsets."""
        if self._cutter is not None:
            return self._encode_cut(texts, self._cutter, threads)
        return self._encode_at(*text_addresses(texts), threads, texts.__getitem__)

    def encode_arrow(self, texts: "pa.StringArray | pa.LargeStringArray") -> tuple[Ids, Int64s]:
        """Flat ids of the strings of an Arrow array without nulls, and their offsets."""
        if self._cutter is not None:
            return self._encode_cut(arrow_texts(texts), self._cutter, 1)
        return self._encode_at(*arrow_addresses(texts), 1, lambda index: texts[index].as_py())

    def _encode_at(
        self, addresses: Int64s, sizes: Int64s, threads: int, text_of: Callable[[int], str]
    ) -> tuple[Ids, Int64s]:
        """Flat ids of the UTF-8 texts at `addresses`, and their offsets; `text_of` gives the text that is refused."""
        try:
            if threads > 1 and len(sizes) > 1:
                return self._encode_in_threads(addresses, sizes, threads)
            offsets = np.zeros(len(sizes) + 1, dtype=np.int64)
            ids, offsets[1:] = self._workspace().encode(addresses, sizes)
            return ids, offsets
        except RefusedTextError as error:
            raise self._refusal(text_of(error.index)) from error

    def _encode_in_threads(self, addresses: Int64s, sizes: Int64s, threads: int) -> tuple[Ids, Int64s]:
        output = SharedOutput(sizes, threads)

        def work(_: int) -> None:
            try:  # a workspace that no other thread uses: callers of `encode_batch` may be threads themselves
                workspace = self._pool.pop()
            except IndexError:
                workspace = Workspace(self._tables.slots)
            output.work(lambda texts: workspace.encode(addresses[texts], sizes[texts]))
            self._pool.append(workspace)

        with ThreadPoolExecutor(threads) as executor:
            list(executor.map(work, range(threads)))
        return output.result()

    def _encode_cut(self, texts: list[str], cutter: Pretokenizer, threads: int) -> tuple[Ids, Int64s]:
        """Flat ids of texts and their offsets; each piece is encoded as a text by itself."""
        pieces: list[str] = []
        bounds = [0]
        for text in texts:
            utf8(text)
            pieces += cutter.pieces(text)
            bounds.append(len(pieces))
        ids, offsets = self._encode_at(*text_addresses(pieces), threads, pieces.__getitem__)
        return ids, offsets[bounds]

    def _workspace(self) -> Workspace:
        workspace: Workspace | None = getattr(self._local, "workspace", None)
        if workspace is None:
            workspace = self._local.workspace = Workspace(self._tables.slots)
        return workspace

    def _refusal(self, text: str) -> DataError:
        columns = self._vocabulary.columns
        units = [columns.spellings[rank] for rank in np.flatnonzero(columns.kinds == UNIT).tolist()]
        alphabet = set(b"".join(units).decode("utf-8"))
        character = next(character for character in text if character not in alphabet)
        return DataError(
            f"character {character!r} (U+{ord(character):04X}) is not in the tokenizer's alphabet and it was trained "
            "without a way to represent others; train with unknown=byte_fallback or unknown=token"
        )


class RefusedTextError(Exception):
    """Text `index` of a call has a character that is not in the alphabet and may not be replaced."""

    def __init__(self, index: int) -> None:
        super().__init__(f"text {index} has a character outside the alphabet")
        self.index = index


# One array of ids that several threads fill: they take blocks of texts in turn, and the ids of a block are placed once
# it is known how many come before them.
class SharedOutput:
    """Ids of texts of `sizes` bytes, encoded block by block in any number of threads."""

    def __init__(self, sizes: Int64s, threads: int) -> None:
        total = int(sizes.sum())
        self._bounds = _block_bounds(sizes, total // (threads * _BLOCKS_A_THREAD))
        # No text has more ids than bytes; pages that are never written take no memory.
        self._ids: Ids = np.empty(total, dtype=np.int32)
        self._offsets = np.zeros(len(sizes) + 1, dtype=np.int64)
        self._lock = threading.Lock()
        self._next_block = self._next_to_place = self._written = 0
        self._waiting: dict[int, tuple[Ids, Int64s]] = {}
        self._refused: list[int] = []

    def work(self, encode: EncodeTexts) -> None:
        """Encode blocks, and place those that can be placed, until none is left; runs in each thread."""
        while (block := self._take_block()) is not None:
            texts = slice(self._bounds[block], self._bounds[block + 1])
            try:
                part = encode(texts)
            except RefusedTextError as error:
                self._refused.append(texts.start + error.index)
                return
            for begin, first, ready in self._hand_in(block, part):
                ids, ends = ready
                self._ids[begin : begin + len(ids)] = ids
                self._offsets[first + 1 : first + 1 + len(ends)] = ends + begin

    def result(self) -> tuple[Ids, Int64s]:
        """All ids and the offsets of the texts. RefusedTextError for the first text that was refused."""
        if self._refused:
            raise RefusedTextError(min(self._refused))
        return self._ids[: self._written], self._offsets

    def _take_block(self) -> int | None:
        with self._lock:
            if self._refused or self._next_block == len(self._bounds) - 1:
                return None
            self._next_block += 1
            return self._next_block - 1

    def _hand_in(self, block: int, part: tuple[Ids, Int64s]) -> list[tuple[int, int, tuple[Ids, Int64s]]]:
        """Hand in the `part` of a block; returns those to place now: (place of ids, index of first text, part)."""
        ready = []
        with self._lock:
            self._waiting[block] = part
            while self._next_to_place in self._waiting:
                next_part = self._waiting.pop(self._next_to_place)
                ready.append((self._written, self._bounds[self._next_to_place], next_part))
                self._written += len(next_part[0])
                self._next_to_place += 1
        return ready


def _block_bounds(sizes: Int64s, size: int) -> list[int]:
    """Bounds of contiguous blocks of texts of about `size` bytes each, within the limits above."""
    ends = np.cumsum(sizes)
    block = min(max(size, _SMALLEST_BLOCK), _LARGEST_BLOCK)
    goals = np.arange(block, int(ends[-1]), block)
    inner = np.unique(np.searchsorted(ends, goals, side="left") + 1)
    return [0, *inner[inner < len(sizes)].tolist(), len(sizes)]


def text_addresses(texts: Sequence[str]) -> tuple[Int64s, Int64s]:
    """Address and size in bytes of the UTF-8 of each text; valid while the texts live.

    DataError for a text that has no UTF-8.
    """
    # An array of objects is an array of their addresses.
    strings = np.empty(len(texts), dtype=object)
    strings[:] = texts
    addresses, sizes = np.empty((2, len(texts)), dtype=np.int64)
    try:
        kernel("find_texts")(address(strings), len(texts), _UTF8_OF, address(addresses), address(sizes))
    except UnicodeEncodeError:
        for text in texts:
            utf8(text)
        raise
    return addresses, sizes


def arrow_addresses(texts: "pa.StringArray | pa.LargeStringArray") -> tuple[Int64s, Int64s]:
    """Address and size in bytes of each text of an Arrow array; valid while it lives. DataError as `arrow_texts`."""
    _check_arrow(texts)
    if len(texts) == 0:
        # An array without texts may have no buffer of offsets.
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    width = np.dtype(np.int64 if str(texts.type) == "large_string" else np.int32)
    _, buffer, data = texts.buffers()
    offsets = np.frombuffer(buffer, dtype=width, count=len(texts) + 1, offset=texts.offset * width.itemsize)
    offsets = offsets.astype(np.int64)
    return (data.address if data is not None else 0) + offsets[:-1], np.diff(offsets)


def arrow_texts(texts: "pa.StringArray | pa.LargeStringArray") -> list[str]:
    """The texts of an Arrow array. DataError for one of another type than string or large_string, or with nulls."""
    _check_arrow(texts)
    return texts.to_pylist()  # type: ignore[no-any-return]


def _check_arrow(texts: Any) -> None:
    import pyarrow as pa

    if not isinstance(texts, pa.StringArray | pa.LargeStringArray):
        raise DataError(
            f"texts must be a pyarrow.StringArray or LargeStringArray, not {type(texts).__name__}; encode_batch takes "
            "a list of strings, and `combine_chunks()` and `cast(pyarrow.large_string())` make an array of other data"
        )
    if texts.null_count:
        raise DataError(
            f"text {texts.is_null().index(True).as_py()} is null ({texts.null_count} of {len(texts)} are); "
            "leave nulls out with `drop_null()`, or make them empty texts with `fill_null('')`"
        )
