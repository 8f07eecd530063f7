"""Files and data sets of a corpus, by name alone; `paribus plan` needs them, so nothing heavy is imported here."""

import glob
import importlib.metadata
import importlib.util
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError
from pathlib import Path, PurePosixPath

from paribus.config.groups.corpus import HuggingFaceCorpus, ParallelCorpus
from paribus.errors import ConfigurationError, DataError
from paribus.store.provenance import version_of

SHOWN = 10
"""Files that an error names; it counts the others."""
FORMATS = ("jsonl", "parquet", "txt")
_ALSO = {"json": "jsonl"}
"""Other suffixes of a format, here that of CCNet's JSON lines."""
COMPRESSIONS = ("gz", "zst", "bz2")
_SUFFIXES = ", ".join(f".{name}" for name in (*FORMATS, *_ALSO))
KNOWN = f"{_SUFFIXES}, plain or with {', '.join('.' + name for name in COMPRESSIONS)}"


def resolve(
    patterns: Sequence[str], field: str = "corpus.paths", *, any_suffix: bool = False, skips: bool = False
) -> list[Path]:
    """Files in the order of `patterns`, the value of `field`; those of one pattern are sorted.

    DataError with the first `SHOWN` problems: missing, empty and repeated files, an unknown format unless `any_suffix`,
    and patterns that match nothing. With `skips` an empty text file is allowed and has no document; an empty archive or
    table is never a complete file.
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
    """The first `SHOWN`, and the number of the others."""
    return [*problems[:SHOWN], f"and {len(problems) - SHOWN:,} more"] if len(problems) > SHOWN else list(problems)


def labels(files: Sequence[Path]) -> list[str]:
    """A short unique name for each file: its base name, with its index in front where others share it."""
    times = Counter(path.name for path in files)
    return [path.name if times[path.name] == 1 else f"{index:05d}/{path.name}" for index, path in enumerate(files)]


def _matched(pattern: str) -> list[Path]:
    path = Path(pattern).expanduser()
    if path.exists():
        return [path]
    matches = sorted(map(Path, glob.glob(str(path), recursive=True))) if _is_pattern(pattern) else []  # noqa: PTH207
    return [match for match in matches if match.is_file()]


def _nothing(pattern: str) -> str:
    what = "the pattern matches no file" if _is_pattern(pattern) else "no such file"
    return f"{pattern}: {what} (looked for {Path(pattern).expanduser().absolute()})"


def _is_pattern(text: str) -> bool:
    return any(character in text for character in "*?[")


def _problem(path: Path, any_suffix: bool, skips: bool) -> str | None:
    if (shown := os.fsencode(path).decode(errors="backslashreplace")) != str(path):
        return f"{shown}: the name is not UTF-8; rename the file"
    if path.is_dir():
        return f"{path}: a directory; give a pattern such as {path}/*{_suffix_in(path)}"
    if not any_suffix and format_of(path) is None:
        return f"{path}: unknown suffix; known are {KNOWN}"
    if path.stat().st_size:
        return None
    if compression_of(path) is not None or format_of(path) == "parquet":
        return f"{path}: the file is empty, and no whole file of its format; make or fetch it again"
    return None if skips else f"{path}: the file is empty; leave it out, or count it as skipped: corpus.on_invalid=skip"


def _suffix_in(directory: Path) -> str:
    """Suffixes of the first file of a known format in a directory; `.jsonl` if there is none or it is unreadable."""
    names = sorted(glob.glob("*", root_dir=directory))  # noqa: PTH207 - no error where it cannot be read
    known = (path for path in map(Path, names) if format_of(path))
    return next(("".join(path.suffixes[-2 if compression_of(path) else -1 :]) for path in known), ".jsonl")


def sides(config: ParallelCorpus) -> tuple[list[Path], list[Path]]:
    """Files of the sources and of the targets; file n of one is aligned with file n of the other.

    DataError for files that are missing or empty, ConfigurationError for sides that cannot be aligned.
    """
    skips = config.on_invalid == "skip"
    sources = resolve(config.source, "corpus.source", any_suffix=True, skips=skips)
    if config.target is None:
        if text := [path for path in sources if record_format(path) == "text"]:
            raise ConfigurationError(
                f"corpus.target: {text[0]} is text and has no second field; give the files of the targets"
            )
        return sources, sources
    targets = resolve(config.target, "corpus.target", any_suffix=True, skips=skips)
    if len(sources) != len(targets):
        raise ConfigurationError(
            f"corpus.target: {len(targets)} files ({_names(targets)}), but corpus.source has {len(sources)} "
            f"({_names(sources)}); file by file, one belongs to the other"
        )
    return sources, targets


def record_format(path: Path) -> str:
    """`jsonl`, `parquet`, or `text` for any other file."""
    format = format_of(path)
    return format if format in ("jsonl", "parquet") else "text"


def _names(paths: list[Path]) -> str:
    return ", ".join(path.name for path in paths[:5]) + (", ..." if len(paths) > 5 else "")


def local_directory(name: str) -> Path | None:
    """The directory `name`, or None for a name on the hub; DataError for a path without a directory."""
    path = Path(name).expanduser()
    if path.is_dir():
        return path
    if path.is_file():
        raise DataError(f"corpus.name={name}: a file, not a data set directory; for files use corpus=files")
    if path.is_absolute() or name.startswith((".", "~")) or name.count("/") > 1:
        raise DataError(f"corpus.name={name}: no such directory (looked for {path.absolute()})")
    return None


def require_revision(config: HuggingFaceCorpus) -> str:
    """The commit of a hub data set; ConfigurationError where none is given, since a hub data set changes."""
    if config.revision is None:
        raise ConfigurationError(
            f"corpus.revision: required, because {config.name!r} is no directory here but a data set of the hub, which "
            f"can change; give the commit shown under https://huggingface.co/datasets/{config.name}/commits/main"
        )
    return config.revision


def data_files(directory: Path) -> list[Path]:
    """Every file below a data set directory, sorted by path; DataError where there is none."""
    below = ((path, path.relative_to(directory).as_posix()) for path in directory.rglob("*") if path.is_file())
    files = sorted(path for path, name in below if "/." not in f"/{name}")
    if not files:
        raise DataError(f"corpus.name={directory}: the directory has no files")
    return files


@dataclass(frozen=True, slots=True)
class Module:
    """A Python source file: its distribution, its path from the import root, and its path on disk."""

    package: str
    relative: str
    path: Path


def versions(packages: Sequence[str]) -> dict[str, str]:
    """Installed version of each distribution; ConfigurationError naming all that are missing or repeated."""
    installed: dict[str, str] = {}
    problems: list[str] = []
    for name in packages:
        if name in installed:
            problems.append(f"{name!r} is listed more than once")
        try:
            installed[name] = version_of(importlib.metadata.distribution(name))
        except (PackageNotFoundError, ValueError):
            problems.append(_not_installed(name))
    if problems:
        raise ConfigurationError("corpus.packages: " + "; ".join(problems))
    return installed


def _not_installed(name: str) -> str:
    owners = importlib.metadata.packages_distributions().get(name)
    if owners:
        return f"{name!r} is a module of the package {owners[0]!r}; write {owners[0]!r}"
    return f"the package {name!r} is not installed; `pip install {name}` or leave it out"


def modules(packages: Sequence[str]) -> list[Module]:
    """Python source files of the distributions: in the order given, then by path. ConfigurationError as `versions`."""
    versions(packages)
    by_path: dict[str, Module] = {}
    for package in packages:
        files = dict(_files(importlib.metadata.distribution(package)))
        if not files:
            raise ConfigurationError(
                f"corpus.packages: the package {package!r} has no Python source files; leave it out"
            )
        for relative in sorted(files):
            by_path.setdefault(relative, Module(package, relative, files[relative]))
    return list(by_path.values())


def _files(distribution: Distribution) -> Iterator[tuple[str, Path]]:
    listed = [file for file in distribution.files or [] if file.suffix == ".py" and ".." not in file.parts]
    for file in listed:
        yield file.as_posix(), Path(str(distribution.locate_file(file)))
    if not any(len(file.parts) > 1 for file in listed):  # an editable install, or one without a list of files
        text = distribution.read_text("top_level.txt")
        names = sorted(text.split()) if text else [distribution.metadata["Name"].replace("-", "_")]
        for name in names:
            yield from _module_files(name)


def _module_files(name: str) -> Iterator[tuple[str, Path]]:
    spec = importlib.util.find_spec(name)
    for root in (spec.submodule_search_locations or []) if spec is not None else []:
        for path in Path(root).rglob("*.py"):
            yield (PurePosixPath(name) / path.relative_to(root).as_posix()).as_posix(), path


def format_of(path: Path) -> str | None:
    """The format that the suffixes of `path` name, or None where they name no known one."""
    *rest, last = path.name.lower().split(".")
    suffix = rest[-1] if compression_of(path) and rest else last
    name = _ALSO.get(suffix, suffix)
    return name if name in FORMATS and rest else None


def compression_of(path: Path) -> str | None:
    """The compression that the last suffix of `path` names, None for plain."""
    last = path.name.lower().rpartition(".")[2]
    return last if last in COMPRESSIONS else None
