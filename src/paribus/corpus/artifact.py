"""The corpus artefact: documents in corpus order as Parquet shards, one directory per split.

A corpus of pairs has the source as its text, and the target in a column of its own.

A shard's bytes depend only on the documents in it (and the version of pyarrow), so equal corpora have equal files.
A document's split depends on its text alone, or on its group: exact copies without a group, pairs of one source and
documents of one group are never in both splits. Near copies are moved to one split later (`overlap`).
"""

import hashlib
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import repeat
from pathlib import Path
from typing import Any, Literal, Self, TypeVar, get_args

import pyarrow as pa
import pyarrow.parquet as pq

from paribus.errors import DataError

Item = TypeVar("Item")
Split = Literal["train", "heldout"]
SPLITS: tuple[Split, ...] = get_args(Split)
SHARD_BYTES = 64 * 2**20
ROW_GROUP_BYTES = 4 * 2**20
BYTES_KEY = b"paribus.bytes"
SCHEMA = pa.schema([("id", pa.string()), ("text", pa.large_string()), ("source", pa.string()), ("bytes", pa.int64())])
TARGET = pa.field("target", pa.large_string())
OVERLAP = pa.field("overlap", pa.float64())


@dataclass(frozen=True, slots=True)
class Document:
    """One document: a unique id, its text, where it came from, and its length in UTF-8 bytes.

    Of a pair, `text` is the source and `bytes` are those of both sides. `overlap` is the largest share of a held-out
    document's 8-grams that one training document has; None in training and until it was measured.
    """

    id: str
    text: str
    source: str
    bytes: int
    target: str | None = None
    overlap: float | None = None

    @property
    def texts(self) -> tuple[str, ...]:
        """The text, or both sides of a pair."""
        return (self.text,) if self.target is None else (self.text, self.target)


class CorpusArtifact:
    """Reader of the corpus artefact in directory `path`; DataError where that is no corpus."""

    def __init__(self, path: Path) -> None:
        self.path = Path(path)

    def shards(self, split: Split) -> list[Path]:
        """Parquet files of the split in corpus order."""
        if split not in SPLITS:
            raise ValueError(f"a corpus has the splits {', '.join(SPLITS)}, not {split!r}")
        directory = self.path / split
        if not directory.is_dir():
            raise DataError(f"{self.path} is not a corpus: it has no directory {split}/")
        return sorted(directory.glob("*.parquet"))

    def documents(self, split: Split) -> Iterator[Document]:
        """Documents of the split in corpus order; one row group is in memory at a time."""
        for shard in self.shards(split):
            yield from read_shard(shard)

    def texts(self, split: Split) -> Iterator[str]:
        """Texts of the split in corpus order, of pairs the sources."""
        for shard in self.shards(split):
            yield from read_texts(shard)

    def count(self, split: Split) -> int:
        """Number of documents, from the shards' footers."""
        return sum(pq.read_metadata(shard).num_rows for shard in self.shards(split))

    def bytes(self, split: Split) -> int:
        """UTF-8 bytes of text, those of both sides of pairs, from the shards' footers."""
        return sum(int(pq.read_metadata(shard).metadata[BYTES_KEY]) for shard in self.shards(split))


def has_pairs(corpus: CorpusArtifact) -> bool:
    """True if the documents are pairs of source and target."""
    return any("target" in pq.read_schema(shard).names for shard in corpus.shards("train")[:1])


def read_shard(shard: Path) -> Iterator[Document]:
    """Documents of one shard in order."""
    present = pq.read_schema(shard).names
    names = [field.name for field in fields(Document)]
    read = [name for name in names if name in present]
    for columns in _row_groups(shard, read):
        values = dict(zip(read, columns, strict=True))
        yield from map(Document, *(values.get(name, repeat(None)) for name in names))


def read_texts(shard: Path) -> Iterator[str]:
    """Texts of one shard in order, of pairs the sources."""
    for (texts,) in _row_groups(shard, ["text"]):
        yield from texts


def read_columns(shard: Path, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """Values of the columns `names` of one shard, document by document; columns that it lacks are left out."""
    present = pq.read_schema(shard).names
    for columns in _row_groups(shard, [name for name in names if name in present]):
        yield from zip(*columns, strict=True)


def _row_groups(shard: Path, names: list[str]) -> Iterator[list[list[Any]]]:
    with pq.ParquetFile(shard) as file:
        for group in range(file.num_row_groups):
            table = file.read_row_group(group, columns=names)
            yield [table.column(name).to_pylist() for name in names]


def batches(items: Iterable[Item], size: Callable[[Item], int], least: int) -> Iterator[list[Item]]:
    """Lists of items in order, each ended as its `size` reaches `least`; the last one may have less."""
    batch, total = list[Item](), 0
    for item in items:
        batch.append(item)
        total += size(item)
        if total >= least:
            yield batch
            batch, total = [], 0
    if batch:
        yield batch


def schema_of(split: Split, *, pairs: bool) -> pa.Schema:
    """The columns of a split."""
    columns = SCHEMA.insert(2, TARGET) if pairs else SCHEMA
    return columns.append(OVERLAP) if split == "heldout" else columns


def split_of(text: bytes, group: str | None, heldout: float) -> Split:
    """The split of a document, by its group or, without one, by its text (UTF-8).

    It is held out where the hash, uniform in [0, 1), is below `heldout`.
    """
    key = text if group is None else group.encode()
    uniform = int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "big") / 2**64
    return "heldout" if uniform < heldout else "train"


class CorpusWriter:
    """Writer of documents, or `pairs`, to the Parquet shards of a corpus; use it as a context manager.

    `heldout` is the expected share of documents in the held-out split, `shard_bytes` the UTF-8 bytes of text after
    which a shard is closed.
    """

    def __init__(self, path: Path, *, heldout: float, shard_bytes: int = SHARD_BYTES, pairs: bool = False) -> None:
        self.heldout = heldout
        self.splits = {
            split: SplitWriter(Path(path) / split, schema_of(split, pairs=pairs), shard_bytes) for split in SPLITS
        }

    def add(self, id: str, text: str, source: str, target: str | None = None, group: str | None = None) -> Split:
        """Append a document in corpus order and return its split; UnicodeEncodeError for a lone surrogate."""
        encoded = text.encode()
        split = split_of(encoded, group, self.heldout)
        size = len(encoded) + len((target or "").encode())
        self.splits[split].add(Document(id, text, source, size, target))
        return split

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        for writer in self.splits.values() if kind is None else ():
            writer.close()


class SplitWriter:
    """Writer of the shards of one split, in a new directory; a shard is closed after `shard_bytes` of text."""

    def __init__(self, directory: Path, schema: pa.Schema, shard_bytes: float = SHARD_BYTES) -> None:
        directory.mkdir(parents=True)
        self.directory, self.shard_bytes, self.schema = directory, shard_bytes, schema
        self.documents = self.bytes = self.target_bytes = 0
        """Documents written so far, UTF-8 bytes of their text (of pairs, both sides), and of targets alone."""
        self._shards = self._shard_bytes = self._buffered_bytes = 0
        self._buffer: list[Document] = []
        self._file: pq.ParquetWriter | None = None

    def add(self, document: Document) -> None:
        """Append a document."""
        self._buffer.append(document)
        self.documents += 1
        self.bytes += document.bytes
        self.target_bytes += len((document.target or "").encode())
        self._buffered_bytes += document.bytes
        if self._shard_bytes + self._buffered_bytes >= self.shard_bytes:
            self.close()
        elif self._buffered_bytes >= ROW_GROUP_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._file is None:
            path = self.directory / f"{self._shards:05d}.parquet"
            self._file = pq.ParquetWriter(path, self.schema, compression="zstd", use_dictionary=["source"])
            self._shards += 1
        columns = [[getattr(document, name) for document in self._buffer] for name in self.schema.names]
        arrays = [pa.array(column, field.type) for column, field in zip(columns, self.schema, strict=True)]
        table = pa.Table.from_arrays(arrays, schema=self.schema)
        self._file.write_table(table, row_group_size=max(1, len(self._buffer)))
        self._shard_bytes += self._buffered_bytes
        self._buffer, self._buffered_bytes = [], 0

    def close(self) -> None:
        """Finish the open shard, if it has documents."""
        if self._buffer:
            self._flush()
        if self._file is not None:
            self._file.add_key_value_metadata({BYTES_KEY: str(self._shard_bytes)})
            self._file.close()
            self._file, self._shard_bytes = None, 0


@dataclass(frozen=True)
class CorpusPart:
    """Consecutive documents of a shard of the training split, and the file for the results computed from them."""

    shard: Path
    group: int
    """Row group of the shard."""
    first: int
    """First row of the part in the row group."""
    rows: int
    start: int
    """Index, in corpus order, of its first document."""
    target: Path

    def columns(self, *names: str) -> pa.Table:
        """Columns of its documents."""
        with pq.ParquetFile(self.shard) as file:
            return file.read_row_group(self.group, columns=list(names)).slice(self.first, self.rows)

    def texts(self) -> list[str]:
        """Texts of the documents."""
        texts: list[str] = self.columns("text").column("text").to_pylist()
        return texts


def corpus_parts(corpus: CorpusArtifact, directory: Path, *, bytes: int | None = None) -> list[CorpusPart]:
    """Parts of the training split in corpus order, with results below `directory`; DataError for an empty split.

    A part is a row group, or about `bytes` of one, for work so slow that a row group is too much to lose.
    """
    directory.mkdir(parents=True, exist_ok=True)
    parts: list[CorpusPart] = []
    start = 0
    for shard in corpus.shards("train"):
        metadata = pq.read_metadata(shard)
        for number in range(metadata.num_row_groups):
            group = metadata.row_group(number)
            pieces = 1 if bytes is None else min(group.num_rows, math.ceil(group.total_byte_size / bytes))
            bounds = [group.num_rows * piece // pieces for piece in range(pieces + 1)]
            for first, end in itertools.pairwise(bounds):
                # Named by its range, so that a part of another size, left by an earlier run, is not taken for this one.
                target = directory / f"{shard.stem}-{number:05d}-{first:08d}-{end:08d}.npy"
                parts.append(CorpusPart(shard, number, first, end - first, start, target))
                start += end - first
    if not parts:
        raise DataError(
            "The training split has no documents to put in order: give more text, or lower `corpus.heldout`"
        )
    return parts
