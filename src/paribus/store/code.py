"""The code that a process runs: the files of paribus and the versions of the packages that may change a number.

A command computes the keys of its artefacts with the code that it loaded. The processes that it starts, hours later
maybe, import what lies on the disk by then: after an edit, a checkout or an upgrade that is other code, whose results
must not be published under those keys. So each of them compares its own with that of the command and refuses.
"""

import hashlib
import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
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
        found = sorted(path for path in package.rglob("*") if path.suffix in SUFFIXES)
        files = {path.relative_to(package).as_posix(): _digest(path) for path in found}
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

    def require_loaded(self, before: Collection[str]) -> None:
        """ConfigurationError where a module that was imported since there were only `before` is of another code."""
        late = [module for name, module in list(sys.modules.items()) if name not in before]
        paths = [Path(file) for module in late if (file := getattr(module, "__file__", None))]
        own = [path for path in paths if path.is_relative_to(PACKAGE) and path.suffix in SUFFIXES]
        found = {path.relative_to(PACKAGE).as_posix(): _digest(path) if path.exists() else "" for path in own}
        if differing := [name for name, digest in sorted(found.items()) if self.files.get(name) != digest]:
            raise changed(differing)

    def to_json(self) -> dict[str, Any]:
        """For another process."""
        return {"files": dict(self.files), "packages": dict(self.packages)}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> "Code":
        """What `to_json` gave."""
        return cls(fields["files"], fields["packages"])


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
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _differing(one: Mapping[str, str], other: Mapping[str, str]) -> Iterator[str]:
    yield from (name for name in sorted(one.keys() | other.keys()) if one.get(name) != other.get(name))
