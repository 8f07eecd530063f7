"""The `tokens` artefact: the encoded training split in corpus order, memory-mapped, and its streaming writer.

`ids.npy` (uint16 up to 65,536 tokens, else uint32) is flat; document i is `ids[offsets[i]:offsets[i + 1]]`, without
an end-of-document token; `source_bytes[i]` are the UTF-8 bytes of its text; `tokenizer/` is what encoded it.

Of a pair, `source_bytes[i]` are those of both sides, the first `source_lengths[i]` ids are the source's and the rest
the target's. Only a corpus of pairs has `source_lengths.npy`.

BPE-dropout may draw the tokens of all documents several times: draw d of document i of n is number d · n + i of
`offsets` and `source_lengths`. The bytes of a document are the same in every draw and stand there once; `draws.npy`
(int64, 1) says how many draws there are, and is left out where there is one.
"""

from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np
import numpy.typing as npt

from paribus.errors import DataError
from paribus.tokenization.tokenizer import Tokenizer

IDS, OFFSETS, SOURCE_BYTES, TOKENIZER = "ids.npy", "offsets.npy", "source_bytes.npy", "tokenizer"
SOURCE_LENGTHS, DRAWS = "source_lengths.npy", "draws.npy"
_HEADER_BYTES = 128


def id_dtype(vocab_size: int) -> npt.DTypeLike:
    """The type of stored ids: uint16 up to 65,536 tokens, else uint32."""
    return np.dtype("<u2" if vocab_size <= 65_536 else "<u4")


class EncodedCorpus:
    """Reads the `tokens` artefact in directory `path`; DataError where it is missing or contradicts itself."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.ids: npt.NDArray[np.unsignedinteger[Any]] = self._map(IDS)
        """All ids, shape (tokens,), memory-mapped."""
        self.offsets: npt.NDArray[np.int64] = self._map(OFFSETS)
        """First id of each document of each draw, and the end, shape (draws · documents + 1,), memory-mapped."""
        self.source_bytes: npt.NDArray[np.int64] = self._map(SOURCE_BYTES)
        """UTF-8 bytes of each document's text, shape (documents,), memory-mapped."""
        self.source_lengths: npt.NDArray[np.int64] | None = None
        """Of pairs, the ids of each source, shape (draws · documents,), memory-mapped."""
        if (self.path / SOURCE_LENGTHS).exists():
            self.source_lengths = self._map(SOURCE_LENGTHS)
        self.tokenizer_path = self.path / TOKENIZER
        self.draws = int(self._map(DRAWS)[0]) if (self.path / DRAWS).exists() else 1
        """Times that every document was encoded."""
        if len(self.offsets) != self.draws * len(self) + 1 or self.offsets[-1] != len(self.ids):
            raise DataError(
                f"{self.path}: {len(self.offsets)} offsets end at {self.offsets[-1:].tolist()}, but there are "
                f"{len(self)} documents, {self.draws} times, and {len(self.ids)} ids"
            )

    def __len__(self) -> int:
        """Number of documents."""
        return len(self.source_bytes)

    @property
    def tokens(self) -> int:
        """Number of ids of all draws, end-of-document tokens not included."""
        return len(self.ids)

    @property
    def first_draw(self) -> npt.NDArray[np.unsignedinteger[Any]]:
        """The ids of every document once."""
        return self.ids[: self.offsets[len(self)]]

    @property
    def bytes_per_token(self) -> float:
        """Mean bytes of text of a token of a context; each document ends in one that stands for none."""
        return float(self.source_bytes.sum()) * self.draws / max(1, self.tokens + self.draws * len(self))

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer that encoded the corpus."""
        return Tokenizer.load(self.tokenizer_path)

    def document(self, index: int) -> npt.NDArray[np.unsignedinteger[Any]]:
        """Ids of one document, a view into the file."""
        return self.ids[self.offsets[index] : self.offsets[index + 1]]

    def _map(self, name: str) -> npt.NDArray[Any]:
        try:
            return np.load(self.path / name, mmap_mode="r", allow_pickle=False)  # type: ignore[no-any-return]
        except (OSError, ValueError, EOFError) as error:
            raise DataError(f"{self.path / name}: no readable array of an encoded corpus ({error})") from error


class ArrayWriter:
    """Appends to a one-dimensional `.npy` file whose length is known only at the end."""

    def __init__(self, path: Path, dtype: npt.DTypeLike) -> None:
        self._dtype = np.dtype(dtype)
        self._file: BinaryIO = path.open("wb")
        self._file.write(bytes(_HEADER_BYTES))
        self.length = 0

    def append(self, array: npt.NDArray[Any]) -> None:
        """Write the elements of `array`."""
        self._file.write(np.ascontiguousarray(array, dtype=self._dtype).tobytes())
        self.length += len(array)

    def close(self) -> None:
        """Write the header, whose size is the same for every length, and close the file."""
        self._file.seek(0)
        header = {"descr": self._dtype.str, "fortran_order": False, "shape": (self.length,)}
        np.lib.format.write_array_header_1_0(self._file, header)
        self._file.close()


class EncodedCorpusWriter:
    """Writer of documents, or `pairs`, to a `tokens` artefact in directory `path`; use it as a context manager.

    With several `draws`, all documents of one draw are appended, then those of the next.
    """

    def __init__(self, path: Path, tokenizer: Tokenizer, *, pairs: bool = False, draws: int = 1) -> None:
        path.mkdir(parents=True, exist_ok=True)
        tokenizer.save(path / TOKENIZER)
        if draws > 1:
            np.save(path / DRAWS, np.array([draws], dtype="<i8"))
        self._ids = ArrayWriter(path / IDS, id_dtype(tokenizer.vocab_size))
        self._offsets = ArrayWriter(path / OFFSETS, "<i8")
        self._source_bytes = ArrayWriter(path / SOURCE_BYTES, "<i8")
        self._source_lengths = ArrayWriter(path / SOURCE_LENGTHS, "<i8") if pairs else None
        self.source_tokens = 0
        """Ids of sources written so far."""
        self._offsets.append(np.zeros(1, dtype=np.int64))

    @property
    def tokens(self) -> int:
        """Ids written so far."""
        return self._ids.length

    @property
    def documents(self) -> int:
        """Documents written so far; further draws do not count."""
        return self._source_bytes.length

    def append(
        self,
        ids: npt.NDArray[Any],
        lengths: npt.NDArray[np.int64],
        source_bytes: npt.NDArray[np.int64],
        source_lengths: npt.NDArray[np.int64] | None = None,
    ) -> None:
        """Append documents: their flat ids, and per document the number of ids and of bytes of text.

        Pairs also have `source_lengths`, the number of a document's ids that are its source's. After the first draw,
        `source_bytes` is empty.
        """
        self._offsets.append(self._ids.length + np.cumsum(lengths))
        self._ids.append(ids)
        self._source_bytes.append(source_bytes)
        if self._source_lengths is not None and source_lengths is not None:
            self._source_lengths.append(source_lengths)
            self.source_tokens += int(source_lengths.sum())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for writer in (self._ids, self._offsets, self._source_bytes, self._source_lengths):
            if writer is not None:
                writer.close()
