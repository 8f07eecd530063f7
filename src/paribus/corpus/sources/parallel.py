"""Pairs of source and target out of aligned files: line n of one belongs to line n of the other.

Lines end at a line feed and nowhere else: real corpora have other separators of Unicode inside their lines.
"""

from collections.abc import Generator, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import BinaryIO

from paribus.config.groups.corpus import ParallelCorpus
from paribus.corpus.readers.compression import ArchiveError, open_decompressed
from paribus.corpus.readers.formats import compression_of
from paribus.corpus.readers.jsonl import read_jsonl
from paribus.corpus.readers.parquet import read_parquet
from paribus.corpus.readers.record import Fields, Item, Record, RecordProblem
from paribus.corpus.readers.txt import read_lines
from paribus.corpus.sources.aligned import record_format, sides
from paribus.corpus.sources.groups import in_group_of_text, require_group_of_text
from paribus.corpus.sources.paths import labels
from paribus.corpus.sources.source import Found, Intake, Skipped
from paribus.errors import DataError


class ParallelSource:
    """The pairs of `corpus=parallel`; ids are `<source file name>:<line or row>`.

    Progress is in bytes of the sources' files as they lie on disk. DataError where a file or record cannot be read, or
    where files that belong together differ in length.
    """

    unit = "B"

    def __init__(self, config: ParallelCorpus) -> None:
        self._config = config
        self._sources, self._targets = sides(config)
        require_group_of_text(config.group_field, [path for path in self._sources if record_format(path) == "text"])
        self.done = 0.0
        self.total = float(sum(path.stat().st_size for path in self._sources))

    def hint(self) -> str:
        """What to change where there are too few pairs."""
        return "give more pairs in corpus.source and corpus.target"

    def items(self) -> Generator[Found | Skipped, None, None]:
        """Pairs file by file, and what was left out between them."""
        intake = Intake(self._config.on_invalid)
        before = 0
        names = labels(self._sources)
        for source, target, label in zip(self._sources, self._targets, names, strict=True):
            is_empty = True
            with source.open("rb") as left, target.open("rb") as right:
                for one, other in self._aligned(source, target, left, right):
                    is_empty = False
                    self.done = float(before + left.tell())
                    found = _pair(intake, one, other, (source, target), label)
                    plain = record_format(source) == "text"
                    yield in_group_of_text(found, self._config.group_field) if plain else found
            if is_empty:
                yield intake.without_records(path=str(source), label=label, what="pair")
            before += source.stat().st_size
            self.done = float(before)

    def _aligned(self, source: Path, target: Path, left: BinaryIO, right: BinaryIO) -> Iterator[tuple[Item, Item]]:
        config, last = self._config, 0
        fields = Fields(config.source_field, None, "corpus.source_field", config.group_field)
        ones = _records(source, left, fields)
        others = _records(target, right, Fields(config.target_field, None, "corpus.target_field"))
        try:
            for one, other in zip_longest(ones, others):
                if one is None or other is None or one.position != other.position:
                    raise DataError(_misaligned(source, target, one, other, last))
                last = one.position
                yield one, other
        except ArchiveError as error:
            raise DataError(f"{error}; it stops after {_unit(source)} {last}. Make or fetch the file again") from error


def _records(path: Path, raw: BinaryIO, fields: Fields) -> Iterator[Item]:
    stream = open_decompressed(path, raw, compression_of(path))
    match record_format(path):
        case "jsonl":
            return read_jsonl(stream, fields)
        case "parquet":
            return read_parquet(path, stream, fields)
        case _:
            return read_lines(stream)


def _pair(intake: Intake, one: Item, other: Item, paths: tuple[Path, Path], label: str) -> Found | Skipped:
    """The pair, or what is wrong with its first side that is no text."""
    if isinstance(one, Record) and isinstance(other, Record):
        return Found(f"{label}:{one.position}", one.text, label, other.text, one.group)
    item, path = (one, paths[0]) if isinstance(one, RecordProblem) else (other, paths[1])
    return intake.take(item, path=str(path), label=path.name, unit=_unit(path))


def _misaligned(source: Path, target: Path, one: Item | None, other: Item | None, last: int) -> str:
    if one is None or other is None:
        ended, longer = (source, target) if one is None else (target, source)
        difference = f"{ended} ends after {_unit(ended)} {last}, but {longer} goes on"
    else:
        difference = (
            f"after {_unit(source)} {last}, {source} goes on in {one.position} and {target} in {other.position}"
        )
    return f"{difference}: the files are not aligned. Give files of which each line is a pair with that of the other"


def _unit(path: Path) -> str:
    return "row" if record_format(path) == "parquet" else "line"
