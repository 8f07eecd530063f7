"""Load compiled kernels, compiling those that this machine has not got.

Object code lies in a directory of the user's cache (`PARIBUS_CACHE`, else `XDG_CACHE_HOME/paribus`, else
`~/.cache/paribus`), a file for each state of a kernel's sources, of numba and of the processor. Loading takes llvmlite
and some milliseconds; numba is imported only to compile.
"""

import ctypes
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy.typing as npt

from paribus.errors import ConfigurationError
from paribus.native.registry import KERNELS, Signature

Progress = Callable[[str, int, int], None]
"""Called with the kernel being compiled, how many are done, and how many there are."""

_CTYPES: dict[str, type[Any]] = {"i64": ctypes.c_int64, "u64": ctypes.c_uint64, "f64": ctypes.c_double}
_IMPORT = re.compile(r"^from (paribus\.(?:\w+\.kernels\.\w+|native\.intrinsics)) import", re.MULTILINE)
_COMPILER = "paribus.native.build"


class Kernel:
    """A compiled function; call it with integers, floats and the addresses of arrays.

    Other threads run meanwhile, unless it calls Python; what that raises comes through.
    """

    def __init__(self, engine: Any, symbol: str, signature: Signature) -> None:
        self._engine = engine
        types = [_CTYPES.get(name, ctypes.c_void_p) for name in signature.arguments]
        make = ctypes.PYFUNCTYPE if signature.holds_gil else ctypes.CFUNCTYPE
        prototype = make(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, *types)
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
    symbol, code = _read(kernel_path(name)) or compile_to_cache(name)
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return Kernel(engine, symbol, KERNELS[name])


def missing_kernels(package: str) -> list[str]:
    """Kernels of a stage package that this machine has not got, or whose file is damaged."""
    own = [name for name, signature in KERNELS.items() if signature.package == package]
    return [name for name in own if _read(kernel_path(name)) is None]


def ensure_compiled(package: str, progress: Progress | None = None) -> int:
    """Compile every kernel of a stage package that is missing or damaged, in one process a core; returns how many."""
    missing = missing_kernels(package)
    command = [sys.executable, "-m", _COMPILER]
    running = [subprocess.Popen([*command, *share]) for share in _shares(missing) if share]
    while running:
        for process in [process for process in running if process.poll() is not None]:
            running.remove(process)
            if process.returncode != 0:
                raise RuntimeError("a kernel could not be compiled; see the message above")
        left = [name for name in missing if not kernel_path(name).exists()]
        if progress is not None:
            progress(left[0] if left else missing[-1], len(missing) - len(left), len(missing))
        time.sleep(0.1)
    return len(missing)


def _shares(names: list[str]) -> list[list[str]]:
    """Names for each core, with about as much source to compile."""
    shares: list[list[str]] = [[] for _ in range(os.cpu_count() or 1)]
    loads = [0] * len(shares)
    sizes = {name: len(_closure(KERNELS[name].module)) for name in names}
    for name in sorted(names, key=sizes.__getitem__, reverse=True):
        lightest = loads.index(min(loads))
        shares[lightest].append(name)
        loads[lightest] += sizes[name]
    return shares


def kernel_path(name: str) -> Path:
    """Where the kernel's object code is, or will be."""
    return cache_directory() / "kernels" / f"{name}-{fingerprint(KERNELS[name].module)}.o"


def fingerprint(module: str) -> str:
    """Digest of everything the object code depends on: sources, numba, processor."""
    digest = hashlib.sha256(_platform())
    for name in sorted(_closure(module)):
        digest.update(name.encode() + b"\0" + _source(name).read_bytes() + b"\0")
    return digest.hexdigest()[:32]


@cache
def _platform() -> bytes:
    features: str = llvm.get_host_cpu_features().flatten()
    parts = (version("numba"), version("llvmlite"), llvm.get_default_triple(), llvm.get_host_cpu_name(), features)
    return "\0".join(parts).encode()


def _closure(module: str) -> set[str]:
    found, rest = {_COMPILER}, [module]
    while rest:
        name = rest.pop()
        if name not in found:
            found.add(name)
            rest += _IMPORT.findall(_source(name).read_text(encoding="utf-8"))
    return found


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


def compile_to_cache(name: str) -> tuple[str, bytes]:
    """Compile one kernel in this process and keep it; returns its symbol and object code."""
    from paribus.native.build import compile_kernel

    symbol, code = compile_kernel(name, KERNELS[name])
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
    return symbol, code


def _read(path: Path) -> tuple[str, bytes] | None:
    """Symbol and object code, or None where the file is missing or not what was written."""
    try:
        header, _, code = path.read_bytes().partition(b"\n")
        described = json.loads(header)
        whole = hashlib.sha256(code).hexdigest() == described["sha256"]
        return (described["symbol"], code) if whole else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
