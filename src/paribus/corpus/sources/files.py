"""Documents from text files, in the order in which the files are given."""

from collections.abc import Generator, Iterator
from functools import partial
from pathlib import Path
from typing import BinaryIO, Literal

from paribus.config.groups.corpus import FilesCorpus
from paribus.corpus.readers.compression import ArchiveError, open_decompressed
from paribus.corpus.readers.formats import format_of
from paribus.corpus.readers.jsonl import read_jsonl
from paribus.corpus.readers.parquet import read_parquet
from paribus.corpus.readers.record import Fields, Item
from paribus.corpus.readers.txt import read_txt
from paribus.corpus.sources.extracts import Extraction, Reader, extracted
from paribus.corpus.sources.groups import in_group_of_text, require_group_of_text
from paribus.corpus.sources.paths import labels, resolve
from paribus.corpus.sources.source import Found, Intake, Skipped
from paribus.engine import Engine
from paribus.errors import ConfigurationError, DataError

TxtDocument = Literal["file", "line", "paragraph"]


class FilesSource:
    """The documents of `corpus=files`; ids are `<file name>:<line or row>` unless a field holds them.

    Workers of an engine that are elsewhere read whole files ahead, and keep what they read in directory `work`.
    Progress is in bytes of the files as they lie on disk. DataError where a file or record cannot be read,
    ConfigurationError where plain text is asked for ids.
    """

    unit = "B"

    def __init__(self, config: FilesCorpus, engine: Engine, work: Path) -> None:
        self._config, self._engine, self._work = config, engine, work
        self._files = resolve(config.paths, skips=config.on_invalid == "skip")
        self._fields = Fields(config.text_field, config.id_field, group=config.group_field)
        plain = [path for path in self._files if _kind(path) == "txt"]
        if config.id_field is not None and plain:
            raise ConfigurationError(
                f"corpus.id_field={config.id_field}: {plain[0]} is plain text without fields; use null"
            )
        require_group_of_text(config.group_field, plain)
        self.without_documents: list[str] = []
        """Files read so far of which every record was skipped."""
        self.done = 0.0
        self.total = float(sum(path.stat().st_size for path in self._files))

    def hint(self) -> str:
        """What to change where there are too few documents."""
        return "give more text in corpus.paths"

    def items(self) -> Generator[Found | Skipped, None, None]:
        """Documents file by file, and what was left out between them."""
        intake = Intake(self._config.on_invalid)
        before = 0
        for path, label, items in zip(self._files, labels(self._files), self._items(), strict=True):
            yield from self._file(path, label, items, before, intake)
            before += path.stat().st_size
            self.done = float(before)

    def _items(self) -> Iterator[Iterator[tuple[Item, int]]]:
        """For each file its items, and how many bytes of it were read by then."""
        read = partial(_records, fields=self._fields, txt_document=self._config.txt_document)
        if self._engine.shares_memory:
            yield from (_read(path, read) for path in self._files)
            return
        directory = self._work / "extracts"
        directory.mkdir(exist_ok=True)
        # A record whose id was there before is left out with on_invalid=skip, and a worker knows no other's ids.
        skips_ids = self._config.id_field is not None and self._config.on_invalid == "skip"
        extraction = Extraction(read, directory, None if skips_ids else self._config.limit)
        yield from map(extracted, self._engine.map(extraction, enumerate(self._files)))

    def _file(
        self, path: Path, label: str, items: Iterator[tuple[Item, int]], before: int, intake: Intake
    ) -> Iterator[Found | Skipped]:
        unit = "row" if _kind(path) == "parquet" else "line"
        plain, last, gave = _kind(path) == "txt", 0, False
        try:
            for item, read in items:
                self.done = float(before + read)
                last = item.position
                found = intake.take(item, path=str(path), label=label, unit=unit)
                gave = gave or isinstance(found, Found)
                yield in_group_of_text(found, self._config.group_field) if plain else found
        except ArchiveError as error:
            place = f"after {unit} {last}" if last else f"before the end of {unit} 1"
            raise DataError(f"{error}; it stops {place}. Make or fetch the file again") from error
        if not last:
            yield intake.without_records(path=str(path), label=label, what="document")
        if not gave:
            self.without_documents.append(str(path))


def _read(path: Path, read: Reader) -> Iterator[tuple[Item, int]]:
    with path.open("rb") as raw:
        for item in read(path, raw):
            yield item, raw.tell()


def _records(path: Path, raw: BinaryIO, *, fields: Fields, txt_document: TxtDocument) -> Iterator[Item]:
    format = format_of(path)
    stream = open_decompressed(path, raw, format.compression if format else None)
    match _kind(path):
        case "jsonl":
            return read_jsonl(stream, fields)
        case "parquet":
            return read_parquet(path, stream, fields)
        case _:
            return read_txt(stream, txt_document)


def _kind(path: Path) -> str:
    format = format_of(path)
    return "" if format is None else format.name
