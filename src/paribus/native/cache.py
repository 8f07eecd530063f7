"""Cache of compiled kernels: a file each for every state of all kernels' sources, of numba and of the processor.

The directory is in the user's cache: `PARIBUS_CACHE`, else `XDG_CACHE_HOME/paribus`, else `~/.cache/paribus`.
"""

import hashlib
import json
import os
import tempfile
from functools import cache
from importlib.metadata import version
from pathlib import Path

import llvmlite.binding as llvm

from paribus.errors import ConfigurationError

COMPILER = "paribus.native.build"
_SOURCES = ("native/build.py", "native/intrinsics.py", "*/kernels.py", "*/kernels/*.py")


def kernel_path(name: str) -> Path:
    """Path of the kernel's object code, there or not."""
    return cache_directory() / "kernels" / f"{name}-{fingerprint()}.o"


@cache
def fingerprint() -> str:
    """Digest of everything that object code depends on: numba, processor, and the sources of all kernels."""
    features: str = llvm.get_host_cpu_features().flatten()
    parts = (version("numba"), version("llvmlite"), llvm.get_default_triple(), llvm.get_host_cpu_name(), features)
    digest = hashlib.sha256("\0".join(parts).encode())
    package = Path(__file__).parents[1]
    for path in sorted(path for pattern in _SOURCES for path in package.glob(pattern)):
        digest.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:32]


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
