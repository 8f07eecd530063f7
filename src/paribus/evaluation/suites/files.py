"""Benchmark files: finding and reading `<data>/<task>/<split>.jsonl[.gz]`, errors by file and line."""

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path

from paribus.errors import ConfigurationError, DataError
from paribus.evaluation.items import AnyItem
from paribus.evaluation.suites.benchmark import Benchmark

FEWSHOT_SPLIT = "train"


def benchmark_file(data: str | None, benchmark: Benchmark) -> Path:
    """The scored file; ConfigurationError when `evaluation.data` is null, DataError when it has no such file."""
    if data is None:
        raise ConfigurationError(
            f"evaluation.data: task {benchmark.name} needs the directory that holds "
            f"{benchmark.directory}/{benchmark.split}.jsonl[.gz]; it is null"
        )
    if not Path(data).is_dir():
        raise DataError(f"evaluation.data: {data} is not a directory (task {benchmark.name} reads it)")
    path = split_file(Path(data), benchmark.directory, benchmark.split)
    if path is None:
        expected = Path(data) / benchmark.directory / f"{benchmark.split}.jsonl"
        hub = "; evaluation.source=hub fetches it" if benchmark.hub else ""
        raise DataError(f"evaluation.data: task {benchmark.name} needs {expected} or the same with .gz{hub}")
    return path


def fewshot_file(scored: Path, benchmark: Benchmark) -> Path | None:
    """The training split beside the scored file, where there is one; examples in the prompt are drawn from it."""
    return split_file(scored.parent.parent, benchmark.directory, FEWSHOT_SPLIT)


def split_file(data: Path, directory: str, split: str) -> Path | None:
    """`<data>/<directory>/<split>.jsonl` or the same with .gz; DataError when there are both."""
    plain = data / directory / f"{split}.jsonl"
    found = [path for path in (plain, plain.with_suffix(".jsonl.gz")) if path.is_file()]
    if len(found) > 1:
        raise DataError(f"evaluation.data: both {found[0]} and {found[1].name} exist; keep one")
    return found[0] if found else None


def read_benchmark(path: Path, benchmark: Benchmark) -> list[AnyItem]:
    """All items of a file in order, named `<split>/<line>`. DataError names file and line."""
    split = path.name.split(".")[0]
    items = [_item(benchmark, f"{split}/{number}", line, path, number) for number, line in _lines(path)]
    if not items:
        raise DataError(f"{path} is empty; task {benchmark.name} needs its items there, one JSON object a line")
    return items


def _item(benchmark: Benchmark, name: str, line: str, path: Path, number: int) -> AnyItem:
    try:
        record = json.loads(line)
        if not isinstance(record, dict):
            raise DataError(f"a JSON object was expected, not {type(record).__name__}")
        return benchmark.item(name, record)
    except json.JSONDecodeError as error:
        raise DataError(f"{path}, line {number}: not JSON: {error}") from error
    except DataError as error:
        raise DataError(f"{path}, line {number}: {error}") from error


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    opener = gzip.open if path.suffix == ".gz" else open
    number = 0
    try:
        with opener(path, "rb") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield number, line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}, line {number}: invalid UTF-8: {error}") from error
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path}, after line {number}: truncated or damaged gzip archive: {error}") from error
