"""Benchmark files: finding and reading `<data>/<task>/<split>.jsonl[.gz|.zst]`, errors by file and line."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from paribus.corpus.paths import compression_of
from paribus.corpus.readers import ArchiveError, open_decompressed
from paribus.errors import ConfigurationError, DataError
from paribus.evaluation.suites.benchmark import Benchmark, Record
from paribus.evaluation.tasks.items import AnyItem

FEWSHOT_SPLIT = "train"
COMPRESSIONS = ("", ".gz", ".zst")
T = TypeVar("T")


@dataclass(frozen=True)
class DataFile:
    """The file below `evaluation.data` that holds what is scored."""

    owner: str
    """What is scored, in words: `task boolq`."""
    directory: str
    names: tuple[str, ...]
    """Its name without the suffix of a compression; where there are several, any of them."""
    otherwise: str = ""
    """What else may be done where it is missing."""

    def find(self, data: str | None) -> Path:
        """Where it lies; ConfigurationError when `evaluation.data` is null, DataError when that has no such file."""
        if data is None:
            # An experiment's tasks stand whatever group of the evaluation a command chooses.
            task = self.owner.startswith("task ")
            without = "; evaluation.source=hub fetches into it, evaluation.tasks=[] scores held-out text alone"
            raise ConfigurationError(
                f"evaluation.data: {self.owner} needs the directory that holds {self.directory}/{self.names[0]}[.gz]; "
                f"it is null{without if task else ''}"
            )
        if not Path(data).is_dir():
            raise DataError(f"evaluation.data: {data} is not a directory ({self.owner} reads it)")
        path = self.find_in(Path(data))
        if path is None:
            expected = " or ".join(str(Path(data) / self.directory / name) for name in self.names)
            raise DataError(
                f"evaluation.data: {self.owner} needs {expected} or the same with .gz or .zst{self.otherwise}"
            )
        return path

    def find_in(self, data: Path) -> Path | None:
        """Where it lies below `data`, None for nowhere; DataError when there are several."""
        found = [
            path
            for name in self.names
            for suffix in COMPRESSIONS
            if (path := data / self.directory / f"{name}{suffix}").is_file()
        ]
        if len(found) > 1:
            raise DataError(f"evaluation.data: both {found[0]} and {found[1].name} exist; keep one")
        return found[0] if found else None


def benchmark_file(data: str | None, benchmark: Benchmark) -> Path:
    """The scored file; ConfigurationError when `evaluation.data` is null, DataError when it has no such file."""
    hub = "; evaluation.source=hub fetches it" if benchmark.hub else ""
    names = (f"{benchmark.split}.jsonl",)
    return DataFile(f"task {benchmark.name}", benchmark.directory, names, hub).find(data)


def fewshot_file(scored: Path, benchmark: Benchmark) -> Path | None:
    """The training split beside the scored file, where there is one; examples in the prompt are drawn from it."""
    return split_file(scored.parent.parent, benchmark.directory, FEWSHOT_SPLIT)


def split_file(data: Path, directory: str, split: str) -> Path | None:
    """`<data>/<directory>/<split>.jsonl` or the same with .gz or .zst; DataError when there are several."""
    return DataFile("", directory, (f"{split}.jsonl",)).find_in(data)


def read_benchmark(path: Path, benchmark: Benchmark) -> list[AnyItem]:
    """All items of a file in order, named `<split>/<line>`. DataError names file and line."""
    return list(read_lines(path, f"task {benchmark.name}", benchmark.item))


def read_lines(path: Path, owner: str, parse: Callable[[str, Record], T]) -> Iterator[T]:
    """What `parse` makes of the name `<split>/<line>` and the record of each line; there is one at least.

    DataError names file and line.
    """
    split, number = path.name.split(".")[0], 0
    for number, line in _lines(path):
        yield _parsed(parse, f"{split}/{number}", line, path, number)
    if not number:
        raise DataError(f"{path} is empty; {owner} needs its lines there, each a JSON object")


def _parsed(parse: Callable[[str, Record], T], name: str, line: str, path: Path, number: int) -> T:
    try:
        record = json.loads(line)
        if not isinstance(record, dict):
            raise DataError(f"a JSON object was expected, not {type(record).__name__}")
        return parse(name, record)
    except json.JSONDecodeError as error:
        raise DataError(f"{path}, line {number}: not JSON: {error}") from error
    except DataError as error:
        raise DataError(f"{path}, line {number}: {error}") from error


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    number = 0
    try:
        with path.open("rb") as raw:
            for number, line in enumerate(open_decompressed(path, raw, compression_of(path)), start=1):
                if line.strip():
                    # A byte order mark at the start of the file is none of its text, as in a corpus.
                    yield number, line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}, line {number}: invalid UTF-8: {error}") from error
    except ArchiveError as error:
        raise DataError(f"{error}; it stops after line {number}") from error
