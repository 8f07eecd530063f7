"""From paths and patterns to files: everything wrong with them is told at once."""

import glob
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from paribus.corpus.readers.formats import KNOWN, compression_of, format_of
from paribus.errors import DataError

SHOWN = 10
"""Files that an error names; of more it says how many there are."""


def resolve(
    patterns: Sequence[str], field: str = "corpus.paths", *, any_suffix: bool = False, skips: bool = False
) -> list[Path]:
    """Files in the order of `patterns`, which `field` gives, those of a pattern sorted.

    DataError naming missing, empty and repeated files, those of an unknown format unless `any_suffix` is allowed, and
    patterns that match nothing, the first `SHOWN` of all. With `skips` a text without a byte is a file as others are,
    without a document; an archive or a table without one is no whole file.
    """
    problems: list[str] = []
    files: list[Path] = []
    for pattern in patterns:
        matched = _matched(pattern)
        if not matched:
            problems.append(_nothing(pattern))
        files += matched
    problems += [problem for path in files if (problem := _problem(path, any_suffix, skips)) is not None]
    repeated = [path for path, times in Counter(path.resolve() for path in files).items() if times > 1]
    problems += [f"{path}: listed more than once" for path in repeated]
    if problems:
        raise DataError(f"{field}: " + "; ".join(first_of(list(dict.fromkeys(problems)))))
    return files


def first_of(problems: Sequence[str]) -> list[str]:
    """The first `SHOWN`, and how many more there are."""
    return [*problems[:SHOWN], f"and {len(problems) - SHOWN:,} more"] if len(problems) > SHOWN else list(problems)


def labels(files: Sequence[Path]) -> list[str]:
    """A short unique name for each file: its base name, after its index where others share it."""
    times = Counter(path.name for path in files)
    return [path.name if times[path.name] == 1 else f"{index:05d}/{path.name}" for index, path in enumerate(files)]


def _is_pattern(text: str) -> bool:
    return any(character in text for character in "*?[")


def _matched(pattern: str) -> list[Path]:
    path = Path(pattern).expanduser()
    if path.exists():
        return [path]
    matches = sorted(map(Path, glob.glob(str(path), recursive=True))) if _is_pattern(pattern) else []  # noqa: PTH207
    return [match for match in matches if match.is_file()]


def _nothing(pattern: str) -> str:
    absolute = Path(pattern).expanduser().absolute()
    if _is_pattern(pattern):
        return f"{pattern}: the pattern matches no file (looked for {absolute})"
    return f"{pattern}: no such file (looked for {absolute})"


def _problem(path: Path, any_suffix: bool, skips: bool) -> str | None:
    if (shown := os.fsencode(path).decode(errors="backslashreplace")) != str(path):
        return f"{shown}: the name is not UTF-8; rename the file"
    if path.is_dir():
        return f"{path}: a directory; give a pattern such as {path}/*{_suffix_in(path)}"
    if not any_suffix and format_of(path) is None:
        return f"{path}: unknown suffix; known are {KNOWN}"
    if path.stat().st_size:
        return None
    if not _may_be_empty(path):
        return f"{path}: the file is empty, and no whole file of its format; make or fetch it again"
    return None if skips else f"{path}: the file is empty; leave it out, or count it as skipped: corpus.on_invalid=skip"


def _may_be_empty(path: Path) -> bool:
    format = format_of(path)
    return compression_of(path) is None and (format is None or format.name != "parquet")


def _suffix_in(directory: Path) -> str:
    """The suffixes of the first file of a known format in a directory that can be read, else those of JSON lines."""
    names = sorted(glob.glob("*", root_dir=directory))  # noqa: PTH207 - no error where it cannot be read
    known = (path for path in map(Path, names) if format_of(path))
    return next(("".join(path.suffixes[-2 if compression_of(path) else -1 :]) for path in known), ".jsonl")
