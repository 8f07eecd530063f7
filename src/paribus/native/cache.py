"""Where object code is kept: a file for each state of a kernel's sources, of numba and of the processor.

The directory is in the user's cache: `PARIBUS_CACHE`, else `XDG_CACHE_HOME/paribus`, else `~/.cache/paribus`.
"""

import hashlib
import json
import os
import re
import tempfile
from functools import cache
from importlib.metadata import version
from pathlib import Path

import llvmlite.binding as llvm

from paribus.errors import ConfigurationError
from paribus.native.registry import KERNELS

COMPILER = "paribus.native.build"
_IMPORT = re.compile(r"^from (paribus\.(?:\w+\.kernels(?:\.\w+)?|native\.intrinsics)) import (\w*)", re.MULTILINE)


def kernel_path(name: str) -> Path:
    """Where the kernel's object code is, or will be."""
    return cache_directory() / "kernels" / f"{name}-{fingerprint(KERNELS[name].module)}.o"


def fingerprint(module: str) -> str:
    """Digest of everything the object code depends on: sources, numba, processor."""
    digest = hashlib.sha256(_platform())
    for name in sorted(closure(module)):
        digest.update(name.encode() + b"\0" + _source(name).read_bytes() + b"\0")
    return digest.hexdigest()[:32]


@cache
def _platform() -> bytes:
    features: str = llvm.get_host_cpu_features().flatten()
    parts = (version("numba"), version("llvmlite"), llvm.get_default_triple(), llvm.get_host_cpu_name(), features)
    return "\0".join(parts).encode()


def closure(module: str) -> set[str]:
    """The modules that a kernel is compiled of: its own, those it imports from, and the compiler."""
    modules, rest = {COMPILER}, [module]
    while rest:
        name = rest.pop()
        if name not in modules:
            modules.add(name)
            imported = _IMPORT.findall(_source(name).read_text(encoding="utf-8"))
            # A folder of kernels has no code: what is imported from it is a module.
            rest += [module if _source(module).is_file() else f"{module}.{item}" for module, item in imported]
    return modules


def _source(module: str) -> Path:
    return Path(__file__).parents[2].joinpath(*module.split(".")).with_suffix(".py")


@cache
def cache_directory() -> Path:
    """A directory that only this user can write to, since code is run from it.

    ConfigurationError where `PARIBUS_CACHE` is none.
    """
    configured, home = os.environ.get("PARIBUS_CACHE"), os.environ.get("XDG_CACHE_HOME")
    if configured:
        if not _is_private(Path(configured)):
            raise ConfigurationError(
                f"PARIBUS_CACHE: {configured} must be a directory that this user owns and nobody else can write to, "
                "since code is run from it; `chmod 700` it, or name another"
            )
        return Path(configured)
    for path in (
        Path(home) / "paribus" if home else None,
        Path("~/.cache/paribus").expanduser(),
        Path(tempfile.gettempdir()) / f"paribus-{os.getuid()}",
    ):
        if path is not None and _is_private(path):
            return path
    return Path(tempfile.mkdtemp(prefix="paribus-"))


def _is_private(path: Path) -> bool:
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = path.stat()
    except OSError:
        return False
    return status.st_uid == os.getuid() and not status.st_mode & 0o022 and os.access(path, os.W_OK)


def keep(name: str, symbol: str, code: bytes) -> None:
    """Put a kernel's symbol and object code where `read` finds them, whole or not at all."""
    path = kernel_path(name)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    header = json.dumps({"symbol": symbol, "sha256": hashlib.sha256(code).hexdigest()}, sort_keys=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".", delete=False) as aside:
        try:
            aside.write(header.encode() + b"\n" + code)
            aside.flush()
        except OSError:
            Path(aside.name).unlink()
            raise
    Path(aside.name).replace(path)


def read(path: Path) -> tuple[str, bytes] | None:
    """Symbol and object code, or None where the file is missing or not what was written."""
    try:
        header, _, code = path.read_bytes().partition(b"\n")
        described = json.loads(header)
        whole = hashlib.sha256(code).hexdigest() == described["sha256"]
        return (described["symbol"], code) if whole else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
