"""Documents from text files and from pairs of aligned files, in the order in which the files are given."""

import hashlib
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import BinaryIO, Literal, Protocol

import pyarrow as pa

from paribus.config.groups.corpus import FilesCorpus, ParallelCorpus
from paribus.corpus.artifact import batches
from paribus.corpus.paths import compression_of, labels, record_format, resolve, sides
from paribus.corpus.readers import (
    ArchiveError,
    Fields,
    Item,
    Record,
    RecordProblem,
    open_decompressed,
    read_jsonl,
    read_lines,
    read_parquet,
    read_txt,
)
from paribus.engine import Engine
from paribus.errors import ConfigurationError, DataError
from paribus.store import files

Reader = Callable[[Path, BinaryIO], Iterator[Item]]
TextReader = Callable[[BinaryIO], Iterator[Item]]
_BATCH_BYTES = 4 * 2**20
_SCHEMA = pa.schema(
    [
        ("position", pa.int64()),
        ("id", pa.string()),
        ("text", pa.large_string()),
        ("group", pa.string()),
        ("reason", pa.string()),
        ("message", pa.string()),
        ("read", pa.int64()),
    ]
)
Row = tuple[int, str | None, str | None, str | None, str | None, str | None, int]
FILE = "file"
"""Value of `corpus.group_field` that groups plain text by its file."""


@dataclass(frozen=True, slots=True)
class SourceDocument:
    """A document as its source has it; of a pair, `text` is the source side.

    Documents of one `group` are pieces of one source; None is a document by itself.
    """

    id: str
    text: str
    source: str
    target: str | None = None
    group: str | None = None


@dataclass(frozen=True, slots=True)
class Skipped:
    """A record that was left out: `reason` is a short name to count by, `message` is for people."""

    file: str
    line: int | None
    reason: str
    message: str


class Intake:
    """Makes documents with unique ids of the items of readers; a corpus has one.

    Remembers 16 bytes per explicit id to find duplicates. A problem raises DataError or, with `on_invalid="skip"`,
    becomes a `Skipped`.
    """

    def __init__(self, on_invalid: Literal["error", "skip"]) -> None:
        self._on_invalid = on_invalid
        self._ids: set[bytes] = set()

    def take(self, item: Item, *, path: str, label: str, unit: str) -> SourceDocument | Skipped:
        """The document of an item of the file at `path`, called `label` in ids and records; DataError for a problem."""
        if isinstance(item, Record) and item.id is not None:
            digest = hashlib.blake2b(item.id.encode(), digest_size=16).digest()
            if digest in self._ids:
                message = f"the id {item.id!r} (corpus.id_field) occurred before"
                item = RecordProblem(item.position, "duplicate_id", message)
            self._ids.add(digest)
        if not isinstance(item, RecordProblem):
            id = f"{label}:{item.position}" if item.id is None else item.id
            return SourceDocument(id, item.text, label, group=item.group)
        if self._on_invalid == "skip":
            return Skipped(label, item.position, item.reason, item.message)
        raise DataError(
            f"{path}, {unit} {item.position}: {item.message}. Correct it, or leave such records out, counted and "
            "logged, with corpus.on_invalid=skip"
        )

    def without_records(self, *, path: str, label: str, what: str) -> Skipped:
        """The `Skipped` of the file at `path`, which has no `what` at all; DataError as `take`."""
        message = f"the file has no {what}, only blank lines or nothing"
        if self._on_invalid == "skip":
            return Skipped(label, None, "empty_file", message)
        raise DataError(f"{path}: {message}; leave it out, or count it as skipped: corpus.on_invalid=skip")


class FilesSource:
    """The documents of `corpus=files`; ids are `<file name>:<line or row>` unless a field holds them.

    Workers of an engine without shared memory read whole files ahead, into directory `work`. Progress is in bytes of
    the files on disk. DataError where a file or record cannot be read, ConfigurationError where plain text is asked for
    ids.
    """

    unit = "B"
    hint = "give more text in corpus.paths"

    def __init__(self, config: FilesCorpus, engine: Engine, work: Path) -> None:
        self._config, self._engine, self._work = config, engine, work
        self._files = resolve(config.paths, skips=config.on_invalid == "skip")
        self._fields = Fields(config.text_field, config.id_field, group=config.group_field)
        plain = [path for path in self._files if record_format(path) == "text"]
        if config.id_field is not None and plain:
            raise ConfigurationError(
                f"corpus.id_field={config.id_field}: {plain[0]} is plain text without fields; use null"
            )
        require_group_of_text(config.group_field, plain)
        self.without_documents: list[str] = []
        """Files read so far that gave no document."""
        self.done = 0.0
        self.total = float(sum(path.stat().st_size for path in self._files))

    def items(self) -> Generator[SourceDocument | Skipped, None, None]:
        """Documents file by file, and records left out, in order."""
        intake = Intake(self._config.on_invalid)
        before = 0
        for path, label, items in zip(self._files, labels(self._files), self._items(), strict=True):
            yield from self._file(path, label, items, before, intake)
            before += path.stat().st_size
            self.done = float(before)

    def _items(self) -> Iterator[Iterator[tuple[Item, int]]]:
        """Yield for each file its items, each with the bytes of the file read by then."""
        read = partial(_records, fields=self._fields, read_text=partial(read_txt, document=self._config.txt_document))
        if self._engine.shares_memory:
            yield from (_read(path, read) for path in self._files)
            return
        directory = self._work / "extracts"
        directory.mkdir(exist_ok=True)
        # With on_invalid=skip, records with repeated ids do not count towards the limit. A worker knows only the ids of
        # its file, so it must read all of it.
        skips_ids = self._config.id_field is not None and self._config.on_invalid == "skip"
        extract = partial(_extract, read, directory, None if skips_ids else self._config.limit)
        yield from map(extracted, self._engine.map(extract, enumerate(self._files)))

    def _file(
        self, path: Path, label: str, items: Iterator[tuple[Item, int]], before: int, intake: Intake
    ) -> Iterator[SourceDocument | Skipped]:
        unit, plain, last, has_document = _unit(path), record_format(path) == "text", 0, False
        try:
            for item, read_bytes in items:
                self.done = float(before + read_bytes)
                last = item.position
                document = intake.take(item, path=str(path), label=label, unit=unit)
                has_document = has_document or isinstance(document, SourceDocument)
                yield in_group_of_text(document, self._config.group_field) if plain else document
        except ArchiveError as error:
            place = f"after {unit} {last}" if last else f"before the end of {unit} 1"
            raise DataError(f"{error}; it stops {place}. Make or fetch the file again") from error
        if not last:
            yield intake.without_records(path=str(path), label=label, what="document")
        if not has_document:
            self.without_documents.append(str(path))


def _read(path: Path, read: Reader) -> Iterator[tuple[Item, int]]:
    with path.open("rb") as raw:
        for item in read(path, raw):
            yield item, raw.tell()


def _records(path: Path, raw: BinaryIO, *, fields: Fields, read_text: TextReader) -> Iterator[Item]:
    stream = open_decompressed(path, raw, compression_of(path))
    match record_format(path):
        case "jsonl":
            return read_jsonl(stream, fields)
        case "parquet":
            return read_parquet(path, stream, fields)
        case _:
            return read_text(stream)


# Pairs of source and target from aligned files: line n of one belongs to line n of the other.
#
# Lines end at a line feed and nowhere else, as real corpora have other line separators of Unicode inside lines.
class ParallelSource:
    """The pairs of `corpus=parallel`; ids are `<source file name>:<line or row>`.

    Progress is in bytes of the sources' files on disk. DataError where a file or record cannot be read, or where
    aligned files differ in length.
    """

    unit = "B"
    hint = "give more pairs in corpus.source and corpus.target"

    def __init__(self, config: ParallelCorpus) -> None:
        self._config = config
        self._sources, self._targets = sides(config)
        require_group_of_text(config.group_field, [path for path in self._sources if record_format(path) == "text"])
        self.done = 0.0
        self.total = float(sum(path.stat().st_size for path in self._sources))

    def items(self) -> Generator[SourceDocument | Skipped, None, None]:
        """Pairs file by file, and records left out, in order."""
        intake = Intake(self._config.on_invalid)
        before = 0
        names = labels(self._sources)
        for source, target, label in zip(self._sources, self._targets, names, strict=True):
            is_empty = True
            with source.open("rb") as raw_source, target.open("rb") as raw_target:
                for source_item, target_item in self._aligned(source, target, raw_source, raw_target):
                    is_empty = False
                    self.done = float(before + raw_source.tell())
                    document = _pair(intake, source_item, target_item, (source, target), label)
                    plain = record_format(source) == "text"
                    yield in_group_of_text(document, self._config.group_field) if plain else document
            if is_empty:
                yield intake.without_records(path=str(source), label=label, what="pair")
            before += source.stat().st_size
            self.done = float(before)

    def _aligned(
        self, source: Path, target: Path, raw_source: BinaryIO, raw_target: BinaryIO
    ) -> Iterator[tuple[Item, Item]]:
        config, last = self._config, 0
        source_fields = Fields(config.source_field, None, "corpus.source_field", config.group_field)
        target_fields = Fields(config.target_field, None, "corpus.target_field")
        source_items = _records(source, raw_source, fields=source_fields, read_text=read_lines)
        target_items = _records(target, raw_target, fields=target_fields, read_text=read_lines)
        try:
            for source_item, target_item in zip_longest(source_items, target_items):
                if source_item is None or target_item is None or source_item.position != target_item.position:
                    raise DataError(_misaligned(source, target, source_item, target_item, last))
                last = source_item.position
                yield source_item, target_item
        except ArchiveError as error:
            raise DataError(f"{error}; it stops after {_unit(source)} {last}. Make or fetch the file again") from error


def _pair(intake: Intake, source: Item, target: Item, paths: tuple[Path, Path], label: str) -> SourceDocument | Skipped:
    """The pair; where a side is no record, the problem of the first such side, as `Intake.take` handles it."""
    if isinstance(source, Record) and isinstance(target, Record):
        return SourceDocument(f"{label}:{source.position}", source.text, label, target.text, source.group)
    item, path = (source, paths[0]) if isinstance(source, RecordProblem) else (target, paths[1])
    return intake.take(item, path=str(path), label=path.name, unit=_unit(path))


def _misaligned(source: Path, target: Path, source_item: Item | None, target_item: Item | None, last: int) -> str:
    if source_item is None or target_item is None:
        ended, longer = (source, target) if source_item is None else (target, source)
        difference = f"{ended} ends after {_unit(ended)} {last}, but {longer} goes on"
    else:
        positions = f"{source} goes on in {source_item.position} and {target} in {target_item.position}"
        difference = f"after {_unit(source)} {last}, {positions}"
    return f"{difference}: the files are not aligned. Give files of which each line is a pair with that of the other"


def _unit(path: Path) -> str:
    return "row" if record_format(path) == "parquet" else "line"


Extract = tuple[Path, DataError | None]
"""File with the items of another file, and the error that ended reading it, if any."""


def _extract(read: Reader, directory: Path, limit: int | None, numbered: tuple[int, Path]) -> Extract:
    """Write the items of a numbered file to `directory`, until they have more than `limit` bytes of text."""
    number, path = numbered
    target, failures = directory / f"{number:06d}.arrow", list[DataError]()
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with files.replacing(target) as aside, path.open("rb") as raw, pa.OSFile(str(aside), "wb") as file:
        rows = _rows(read(path, raw), raw, limit, failures)
        with pa.ipc.new_stream(file, _SCHEMA, options=options) as writer:
            for batch in batches(rows, lambda row: len(row[2] or ""), _BATCH_BYTES):
                columns = zip(zip(*batch, strict=True), _SCHEMA, strict=True)
                arrays = [pa.array(column, field.type) for column, field in columns]
                writer.write_batch(pa.record_batch(arrays, schema=_SCHEMA))
    return target, next(iter(failures), None)


def _rows(items: Iterator[Item], raw: BinaryIO, limit: int | None, failures: list[DataError]) -> Iterator[Row]:
    """One row per item; an error ends them and is put into `failures`, so that earlier rows are still written."""
    size = 0
    try:
        for item in items:
            if isinstance(item, Record):
                yield item.position, item.id, item.text, item.group, None, None, raw.tell()
                size += len(item.text.encode())
            else:
                message = item.message.encode("utf-8", "backslashreplace").decode()
                yield item.position, None, None, None, item.reason, message, raw.tell()
            if limit is not None and size > limit:
                return
    except DataError as error:
        failures.append(error)


def extracted(extract: Extract) -> Iterator[tuple[Item, int]]:
    """Items of an extract, each with the bytes of the file read by then, then its error, if any. Removes its file."""
    path, failure = extract
    with pa.OSFile(str(path), "rb") as file, pa.ipc.open_stream(file) as reader:
        for batch in reader:
            for position, id, text, group, reason, message, read in zip(
                *(column.to_pylist() for column in batch.columns), strict=True
            ):
                item = Record(position, id, text, group)
                yield RecordProblem(position, reason, message) if text is None else item, read
    path.unlink()
    if failure is not None:
        raise failure


def require_group_of_text(group_field: str | None, plain: Sequence[Path]) -> None:
    """ConfigurationError where files of plain text are to be grouped by anything but their names."""
    if plain and group_field not in (None, FILE):
        raise ConfigurationError(
            f"corpus.group_field={group_field}: {plain[0]} is plain text without fields; use {FILE}, by which the "
            "documents of a file are one group, or null"
        )


def in_group_of_text(document: SourceDocument | Skipped, group_field: str | None) -> SourceDocument | Skipped:
    """A document of plain text, with its file as its group if `group_field` asks for groups."""
    if group_field is None or isinstance(document, Skipped):
        return document
    return replace(document, group=document.source)


class Source(Protocol):
    """Documents in corpus order, with the progress made in reading them."""

    done: float
    total: float
    unit: str
    hint: str
    """Remedy in errors about too few documents."""

    def items(self) -> Generator[SourceDocument | Skipped, None, None]:
        """Documents and records left out, in corpus order."""
