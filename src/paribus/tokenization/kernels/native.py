"""Load compiled kernels, compiling them first where this machine has none.

Object code lies in a directory of the user's cache (`PARIBUS_CACHE`, else `XDG_CACHE_HOME/paribus`, else
`~/.cache/paribus`), one folder for each state of the sources, of numba and of the processor. Loading takes llvmlite
and some milliseconds; numba is imported only to compile.
"""

import ctypes
import hashlib
import json
import os
import tempfile
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy.typing as npt

from paribus.tokenization.kernels.registry import KERNELS

MANIFEST = "manifest.json"
Progress = Callable[[str, int, int], None]
"""Called with what is being compiled, how many are done, and how many there are."""

_CTYPES: dict[str, type[Any]] = {"i64": ctypes.c_int64, "f64": ctypes.c_double}


class Kernel:
    """A compiled function; call it with integers, floats and the addresses of arrays. Other threads run meanwhile."""

    def __init__(self, engine: Any, symbol: str, arguments: tuple[str, ...]) -> None:
        self._engine = engine
        types = [_CTYPES.get(name, ctypes.c_void_p) for name in arguments]
        prototype = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, *types)
        self._function = prototype(engine.get_function_address(symbol))

    def __call__(self, *arguments: float) -> int:
        result, unused = ctypes.c_int64(), ctypes.c_void_p()
        status = self._function(ctypes.byref(result), ctypes.byref(unused), *arguments)
        if status != 0:
            raise RuntimeError(f"a compiled kernel failed with status {status}")
        return result.value


def address(array: npt.NDArray[Any]) -> int:
    """Where the elements of a contiguous array begin; the caller keeps the array alive."""
    assert array.flags.c_contiguous
    return int(array.__array_interface__["data"][0])


@cache
def kernel(name: str) -> Kernel:
    """The kernel of that name in `registry`, compiled if need be."""
    directory = ensure_compiled()
    entry = _manifest(directory)[name]
    code = (directory / f"{name}.o").read_bytes()
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return Kernel(engine, entry["symbol"], KERNELS[name].arguments)


@cache
def ensure_compiled(progress: Progress | None = None) -> Path:
    """The directory of this machine's kernels, made if it is missing or damaged."""
    directory = cache_directory() / "kernels" / fingerprint()
    if _is_whole(directory):
        return directory
    from paribus.tokenization.kernels.build import build

    return build(directory, progress)


def fingerprint() -> str:
    """Digest of everything the object code depends on."""
    digest = hashlib.sha256()
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    for part in (version("numba"), version("llvmlite"), llvm.get_default_triple(), llvm.get_host_cpu_name()):
        digest.update(part.encode() + b"\0")
    digest.update(llvm.get_host_cpu_features().flatten().encode())
    return digest.hexdigest()[:32]


def cache_directory() -> Path:
    """A directory that only this user can write to, since code is run from it."""
    configured = os.environ.get("PARIBUS_CACHE")
    home = os.environ.get("XDG_CACHE_HOME")
    for path in (
        Path(configured) if configured else None,
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


def _manifest(directory: Path) -> dict[str, dict[str, str]]:
    loaded: dict[str, dict[str, str]] = json.loads((directory / MANIFEST).read_text(encoding="utf-8"))
    return loaded


def _is_whole(directory: Path) -> bool:
    try:
        entries = _manifest(directory)
        return set(entries) == set(KERNELS) and all(
            hashlib.sha256((directory / f"{name}.o").read_bytes()).hexdigest() == entry["sha256"]
            for name, entry in entries.items()
        )
    except (OSError, ValueError, KeyError, TypeError):
        return False
