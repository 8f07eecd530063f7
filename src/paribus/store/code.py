"""The code that a process runs: the files of paribus and the versions of the packages that may change a number.

A command computes the keys of its artefacts with the code that it loaded. The processes that it starts, hours later
maybe, import what lies on the disk by then: after an edit, a checkout or an upgrade that is other code, whose results
must not be published under those keys. So each of them compares its own with that of the command and refuses.
"""

import hashlib
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from paribus.errors import ConfigurationError
from paribus.store.packages import HARMLESS
from paribus.store.provenance import package_versions

PACKAGE = Path(__file__).resolve().parents[1]
SUFFIXES = (".py", ".json")
_NAMED = 3


@dataclass(frozen=True)
class Code:
    """`files` are SHA-256 digests by path below the package, `packages` versions by name."""

    files: Mapping[str, str]
    packages: Mapping[str, str]

    @classmethod
    def read(cls, package: Path = PACKAGE) -> "Code":
        """What lies on the disk at this moment."""
        found = sorted(path for path in package.rglob("*") if path.suffix in SUFFIXES and path.name[0] != ".")
        digests = {path.relative_to(package).as_posix(): _digest(path) for path in found}
        files = {name: digest for name, digest in digests.items() if digest}
        return cls(files, {name: version for name, version in package_versions().items() if name not in HARMLESS})

    @property
    def digest(self) -> str:
        """One for all files and versions."""
        lines = (f"{name} {value}\n" for part in (self.files, self.packages) for name, value in sorted(part.items()))
        return hashlib.sha256("".join(lines).encode()).hexdigest()

    def require(self, other: "Code") -> None:
        """ConfigurationError naming what is not the same in `other`, the code of the process that asks."""
        differing = [*_differing(self.files, other.files), *_differing(self.packages, other.packages)]
        if differing:
            raise changed(differing)

    def require_file(self, path: Path) -> None:
        """ConfigurationError where a file of the package is not as it was."""
        name = path.relative_to(PACKAGE).as_posix()
        if self.files.get(name) != _digest(path):
            raise changed([name])

    def to_json(self) -> dict[str, Any]:
        """For another process."""
        return {"files": dict(self.files), "packages": dict(self.packages)}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> "Code":
        """What `to_json` gave."""
        return cls(fields["files"], fields["packages"])


class _Importer(MetaPathFinder):
    """Looks at every module of paribus in the moment before it is imported, hours into a stage maybe."""

    def __init__(self, code: Code) -> None:
        self._code = code

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """None: others find and load it, unless it is refused."""
        if fullname.partition(".")[0] == PACKAGE.name:
            spec = PathFinder.find_spec(fullname, path)
            if spec is not None and spec.origin is not None and Path(spec.origin).is_relative_to(PACKAGE):
                self._code.require_file(Path(spec.origin))
        return None


def hold_to(code: Code) -> None:
    """Let this process, for the rest of its life, import nothing of paribus that is not of this code."""
    if not any(isinstance(finder, _Importer) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Importer(code))


@cache
def loaded_code() -> Code:
    """The code of this process; asked for the first time as soon as the process begins, before the disk can change."""
    return Code.read()


def changed(names: Collection[str]) -> ConfigurationError:
    """The refusal to go on with files and packages that are other ones than those the command began with."""
    listed = list(names)
    more = f" and {len(listed) - _NAMED} more" if len(listed) > _NAMED else ""
    return ConfigurationError(
        f"the code changed while the command ran ({', '.join(listed[:_NAMED])}{more}): what it makes would not be what "
        "its keys say, so nothing is published; give the command again, and leave the code alone while it runs"
    )


def _digest(path: Path) -> str:
    """SHA-256 of a file; nothing of one that is gone, or is a link to nothing, as editors make them."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except FileNotFoundError:
        return ""


def _differing(one: Mapping[str, str], other: Mapping[str, str]) -> Iterator[str]:
    yield from (name for name in sorted(one.keys() | other.keys()) if one.get(name) != other.get(name))
