"""The files and versions of installed packages, found without importing them."""

import importlib.metadata
import importlib.util
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError
from pathlib import Path, PurePosixPath

from paribus.errors import ConfigurationError
from paribus.store.provenance import version_of


@dataclass(frozen=True, slots=True)
class Module:
    """A Python source file: its distribution, its path from the import root, and where it lies."""

    package: str
    relative: str
    path: Path


def versions(packages: Sequence[str]) -> dict[str, str]:
    """Installed version of each distribution; ConfigurationError naming all that are missing or repeated."""
    found: dict[str, str] = {}
    problems: list[str] = []
    for name in packages:
        if name in found:
            problems.append(f"{name!r} is listed more than once")
        try:
            found[name] = version_of(importlib.metadata.distribution(name))
        except (PackageNotFoundError, ValueError):
            problems.append(_not_installed(name))
    if problems:
        raise ConfigurationError("corpus.packages: " + "; ".join(problems))
    return found


def _not_installed(name: str) -> str:
    owners = importlib.metadata.packages_distributions().get(name)
    if owners:
        return f"{name!r} is a module of the package {owners[0]!r}; write {owners[0]!r}"
    return f"the package {name!r} is not installed; `pip install {name}` or leave it out"


def modules(packages: Sequence[str]) -> list[Module]:
    """Python source files of the distributions: in the order given, then by path. ConfigurationError as `versions`."""
    versions(packages)
    found: dict[str, Module] = {}
    for package in packages:
        files = dict(_files(importlib.metadata.distribution(package)))
        if not files:
            raise ConfigurationError(
                f"corpus.packages: the package {package!r} has no Python source files; leave it out"
            )
        for relative in sorted(files):
            found.setdefault(relative, Module(package, relative, files[relative]))
    return list(found.values())


def _files(distribution: Distribution) -> Iterator[tuple[str, Path]]:
    listed = [file for file in distribution.files or [] if file.suffix == ".py" and ".." not in file.parts]
    for file in listed:
        yield file.as_posix(), Path(str(distribution.locate_file(file)))
    if not any(len(file.parts) > 1 for file in listed):  # an editable install, or one without a list of files
        for name in _top_level(distribution):
            yield from _module_files(name)


def _top_level(distribution: Distribution) -> list[str]:
    text = distribution.read_text("top_level.txt")
    return sorted(text.split()) if text else [distribution.metadata["Name"].replace("-", "_")]


def _module_files(name: str) -> Iterator[tuple[str, Path]]:
    spec = importlib.util.find_spec(name)
    for root in (spec.submodule_search_locations or []) if spec is not None else []:
        for path in Path(root).rglob("*.py"):
            yield (PurePosixPath(name) / path.relative_to(root).as_posix()).as_posix(), path
