"""Provenance: where, when and with what an artefact was made."""

import hashlib
import importlib.metadata
import os
import platform
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from paribus import __version__
from paribus.errors import ConfigurationError
from paribus.store.packages import HARMLESS, recorded

LONGEST_DIFF, MOST_UNTRACKED = 200_000, 100
SOURCE = Path("share", "paribus", "source.json")
"""File in which an image says what it was built from, below the prefix of its Python."""
_SOURCE = re.compile(r'"source": "(?P<commit>[0-9a-f]{40})(\+(?P<changes>[0-9a-f]{64}))?"')
CHOOSING_KERNELS = ("ATEN_CPU_CAPABILITY", "DNNL_", "MKL_", "ONEDNN_", "OPENBLAS_")
"""Prefixes of variables by which libraries of linear algebra take other kernels than the CPU's."""
DIFF = (
    "diff", "--binary", "--full-index", "--no-color", "--no-ext-diff", "--no-textconv", "--no-relative",
    "--src-prefix=a/", "--dst-prefix=b/",
)  # fmt: skip
PACKAGE = Path(__file__).resolve().parents[1]
SUFFIXES = (".py", ".json")
_NAMED = 3


def provenance() -> dict[str, Any]:
    """Commit and changes, package versions, host, processors, GPU, container and arithmetic of this process."""
    return {
        "paribus": __version__,
        "git": git_state(Path(__file__)) or built_from(),
        "packages": package_versions(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "host": socket.gethostname(),
        "processors": os.cpu_count(),
        "gpu": gpu_names(),
        "container": container(),
        **arithmetic(),
    }


def package_versions() -> dict[str, str]:
    """Versions of the packages that paribus depends on, of those that are installed."""
    versions = {}
    for name in recorded():
        try:
            versions[name] = version_of(importlib.metadata.distribution(name))
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def version_of(package: importlib.metadata.Distribution) -> str:
    """Version of a package; `package.version` parses the description too and takes several times as long."""
    text = package.read_text("METADATA") or package.read_text("PKG-INFO") or ""
    head = text.partition("\n\n")[0]
    match = re.search(r"^Version:(.*)$", head, re.MULTILINE | re.IGNORECASE)
    return match[1].strip() if match else package.version


def git_state(file: Path) -> dict[str, Any] | None:
    """Commit, uncommitted difference and unknown files of the checkout that tracks `file`; None where none does.

    The difference is what `git apply` takes, whatever the user's settings of git are.
    """
    if (checkout := _checkout(file)) is None:
        return None
    commit, diff, unknown = checkout
    return {
        "commit": commit,
        "diff": diff[:LONGEST_DIFF],
        "diff_truncated": len(diff) > LONGEST_DIFF,
        "untracked": unknown[:MOST_UNTRACKED],
    }


def source_of(file: Path) -> str | None:
    """Source of an image: the commit of the checkout that tracks `file`, `<commit>+<digest>` where there are
    uncommitted changes; None where there is no checkout.

    The digest is the SHA-256 of the difference, and of the unknown files' names and contents after it.
    """
    checkout, top = _checkout(file), _output(["git", "-C", str(file.parent), "rev-parse", "--show-toplevel"])
    if checkout is None or top is None:
        return None
    commit, diff, unknown = checkout
    changes = [diff.encode()]
    for name in unknown:
        path = Path(top.rstrip("\n")) / name
        changes += [name.encode(), str(path.readlink()).encode() if path.is_symlink() else path.read_bytes()]
    return f"{commit}+{hashlib.sha256(b''.join(changes)).hexdigest()}" if any(changes) else commit


def _checkout(file: Path) -> tuple[str, str, list[str]] | None:
    """Commit, difference and unknown files. An installed package may lie in a repository that does not track it."""
    git = ["git", "-C", str(file.parent)]
    commit = _output([*git, "rev-parse", "HEAD"])
    if commit is None or _output([*git, "ls-files", "--error-unmatch", file.name]) is None:
        return None
    unknown = _output([*git, "ls-files", "--others", "--exclude-standard", "-z", "--full-name", ":/"]) or ""
    return commit.strip(), _output([*git, *DIFF, "HEAD"]) or "", unknown.split("\0")[:-1]


def built_from() -> dict[str, Any] | None:
    """State, like `git_state`, that the image of this Python was built from; None where no file says it.

    Of uncommitted changes an image has no more than their digest, as `changes`.
    """
    match = _SOURCE.search(_text(Path(sys.prefix) / SOURCE))
    if match is None:
        return None
    commit, changes = match["commit"], match["changes"]
    state: dict[str, Any] = {"commit": commit, "diff": "", "diff_truncated": changes is not None, "untracked": []}
    return state | ({"changes": changes} if changes else {})


def gpu_names() -> list[str]:
    """Names of the NVIDIA devices the driver lists; empty without a driver."""
    listed = _output(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"])
    return listed.splitlines() if listed else []


def arithmetic() -> dict[str, Any]:
    """Values that decide the last digits of sums: CPU model, kernels of BLAS, variables that choose others."""
    import numpy  # noqa: F401  # loads its BLAS
    from threadpoolctl import threadpool_info  # type: ignore[import-untyped]

    libraries = [library for library in threadpool_info() if library["user_api"] == "blas"]
    chosen = {name: value for name, value in sorted(os.environ.items()) if name.startswith(CHOOSING_KERNELS)}
    model = re.search(r"^model name\s*: (.*)$", _text(Path("/proc/cpuinfo")), re.MULTILINE)
    kernels = {f"{library['internal_api']} {library.get('architecture', 'unknown')}" for library in libraries}
    return {
        "cpu": model[1] if model else platform.processor(),
        "blas": sorted(kernels),
        "variables": {name: value for name, value in chosen.items() if not name.endswith("_NUM_THREADS")},
    }


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def container() -> str | None:
    """Kind of the container of this process, by the file that Docker or Podman puts there; None without one."""
    if Path("/.dockerenv").exists():
        return "docker"
    return "podman" if Path("/run/.containerenv").exists() else None


def _output(command: list[str]) -> str | None:
    if shutil.which(command[0]) is None:
        return None
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", errors="replace", check=False)
    return done.stdout if done.returncode == 0 else None


@dataclass(frozen=True)
class Code:
    """`files` are SHA-256 digests by path below the package, `packages` versions by name; JSON by `vars`."""

    files: dict[str, str]
    packages: dict[str, str]

    @classmethod
    def read(cls, package: Path = PACKAGE) -> "Code":
        """Read the code that lies on the disk at this moment."""
        sources = sorted(path for path in package.rglob("*") if path.suffix in SUFFIXES and path.name[0] != ".")
        digests = {path.relative_to(package).as_posix(): _digest(path) for path in sources}
        files = {name: digest for name, digest in digests.items() if digest}
        return cls(files, {name: version for name, version in package_versions().items() if name not in HARMLESS})

    @property
    def digest(self) -> str:
        """SHA-256 over all files and versions."""
        lines = (f"{name} {value}\n" for part in (self.files, self.packages) for name, value in sorted(part.items()))
        return hashlib.sha256("".join(lines).encode()).hexdigest()

    def require(self, other: "Code") -> None:
        """Raise ConfigurationError naming what differs in `other`, the code of the process that asks."""
        differing = [*_differing(self.files, other.files), *_differing(self.packages, other.packages)]
        if differing:
            raise changed(differing)


class _Importer(MetaPathFinder):
    """Finder that checks every module of paribus just before it is imported, hours into a stage maybe."""

    def __init__(self, code: Code) -> None:
        self._code = code

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return None, so that other finders load the module; ConfigurationError where its file changed."""
        if fullname.partition(".")[0] == PACKAGE.name:
            spec = PathFinder.find_spec(fullname, path)
            if spec is not None and spec.origin is not None and Path(spec.origin).is_relative_to(PACKAGE):
                name = Path(spec.origin).relative_to(PACKAGE).as_posix()
                if self._code.files.get(name) != _digest(Path(spec.origin)):
                    raise changed([name])
        return None


def pin_code(code: Code) -> None:
    """Have this process import modules of paribus only as `code` has them, for the rest of its life.

    ConfigurationError where it has loaded other code.
    """
    code.require(loaded_code())
    if not any(isinstance(finder, _Importer) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Importer(code))


@cache
def loaded_code() -> Code:
    """Code of this process; called first as soon as the process begins, before the disk can change."""
    return Code.read()


def changed(names: Collection[str]) -> ConfigurationError:
    """Error for files and packages that changed since the command began."""
    listed = list(names)
    more = f" and {len(listed) - _NAMED} more" if len(listed) > _NAMED else ""
    return ConfigurationError(
        f"the code changed while the command ran ({', '.join(listed[:_NAMED])}{more}): what it makes would not be what "
        "its keys say, so nothing is published; give the command again, and leave the code alone while it runs"
    )


def _digest(path: Path) -> str:
    """SHA-256 of a file; empty for one that is gone, or is a link to nothing, as editors make them."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except FileNotFoundError:
        return ""


def _differing(first: Mapping[str, str], second: Mapping[str, str]) -> Iterator[str]:
    yield from (name for name in sorted(first.keys() | second.keys()) if first.get(name) != second.get(name))
