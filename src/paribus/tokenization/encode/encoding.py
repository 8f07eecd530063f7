"""Text to ids with compiled kernels: one workspace a thread, documents shared out among threads by bytes."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from paribus.errors import DataError
from paribus.native.loader import address
from paribus.tokenization.encode.shared_output import SharedOutput
from paribus.tokenization.encode.tables import EncodingTables, check_servable
from paribus.tokenization.encode.text_address import arrow_addresses, arrow_texts, text_addresses
from paribus.tokenization.encode.workspace import Ids, RefusedTextError, Workspace
from paribus.tokenization.pretokenize.cutter import Cutter
from paribus.tokenization.settings import Settings
from paribus.tokenization.vocabulary.units import utf8
from paribus.tokenization.vocabulary.vocabulary import UNIT, Vocabulary

if TYPE_CHECKING:
    import pyarrow as pa

Offsets = npt.NDArray[np.int64]


class Encoding:
    """Encodes with one vocabulary and encoder. Threads may share it.

    Raises ConfigurationError where the vocabulary cannot serve the encoder.
    """

    def __init__(self, vocabulary: Vocabulary, settings: Settings, cutter: Cutter | None) -> None:
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
        return self.encode_at(place[:1], place[1:], 1)[0]

    def encode_batch(self, texts: list[str], threads: int) -> tuple[Ids, Offsets]:
        """Flat ids of texts and their offsets."""
        if self._cutter is not None:
            return self._encode_cut(texts, self._cutter, threads)
        addresses, sizes = text_addresses(texts)
        try:
            return self.encode_at(addresses, sizes, threads)
        except RefusedTextError as error:
            raise self._refusal(texts[error.index]) from error

    def encode_arrow(self, texts: "pa.StringArray | pa.LargeStringArray") -> tuple[Ids, Offsets]:
        """Flat ids of the strings of an Arrow array without nulls, and their offsets."""
        if self._cutter is not None:
            return self._encode_cut(arrow_texts(texts), self._cutter, 1)
        try:
            return self.encode_at(*arrow_addresses(texts), 1)
        except RefusedTextError as error:
            raise self._refusal(texts[error.index].as_py()) from error

    def encode_at(
        self, addresses: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64], threads: int
    ) -> tuple[Ids, Offsets]:
        """Flat ids of the UTF-8 texts at these addresses and their offsets; RefusedTextError has a text's index."""
        if threads <= 1 or len(sizes) < 2:
            offsets = np.zeros(len(sizes) + 1, dtype=np.int64)
            ids, offsets[1:] = self._workspace().encode(addresses, sizes)
            return ids, offsets
        output = SharedOutput(sizes, threads)

        def work(_: int) -> None:
            workspace = self._take_workspace()
            output.work(lambda texts: workspace.encode(addresses[texts], sizes[texts]))
            self._pool.append(workspace)

        with ThreadPoolExecutor(threads) as executor:
            list(executor.map(work, range(threads)))
        return output.result()

    def _encode_cut(self, texts: list[str], cutter: Cutter, threads: int) -> tuple[Ids, Offsets]:
        """Every piece is encoded as if it were a text of its own."""
        pieces: list[str] = []
        bounds = [0]
        for text in texts:
            utf8(text)
            pieces += cutter.pieces(text)
            bounds.append(len(pieces))
        addresses, sizes = text_addresses(pieces)
        try:
            ids, offsets = self.encode_at(addresses, sizes, threads)
        except RefusedTextError as error:
            raise self._refusal(pieces[error.index]) from error
        return ids, offsets[bounds]

    def _take_workspace(self) -> Workspace:
        """One that no other thread has; callers of `encode_batch` may be threads themselves."""
        try:
            return self._pool.pop()
        except IndexError:
            return Workspace(self._tables.slots)

    def _workspace(self) -> Workspace:
        found: Workspace | None = getattr(self._local, "workspace", None)
        if found is None:
            found = self._local.workspace = Workspace(self._tables.slots)
        return found

    def _refusal(self, text: str) -> DataError:
        columns = self._vocabulary.columns
        units = [columns.spellings[rank] for rank in np.flatnonzero(columns.kinds == UNIT).tolist()]
        alphabet = set(b"".join(units).decode("utf-8"))
        character = next(character for character in text if character not in alphabet)
        return DataError(
            f"character {character!r} (U+{ord(character):04X}) is not in the tokenizer's alphabet and it was trained "
            "without a way to represent others; train with unknown=byte_fallback or unknown=token"
        )
