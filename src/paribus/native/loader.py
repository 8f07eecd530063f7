"""Compiled kernels: loading, compiling those that this machine lacks, and the memory that kernels share with Python.

Loading takes llvmlite and some milliseconds; numba is imported only to compile. Object code is in the user's cache, a
file for each kernel and `fingerprint`: in `PARIBUS_CACHE` if that is set, else in the first private directory among
`XDG_CACHE_HOME/paribus`, `~/.cache/paribus` and `paribus-UID` in the directory of temporary files.

As a program it compiles the kernels that its arguments name.
"""

import ctypes
import hashlib
import json
import math
import mmap
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import numpy.typing as npt

from paribus.errors import ConfigurationError
from paribus.native.registry import KERNELS, Signature

PROGRAM = "paribus.native.loader"
_SOURCES = ("native/compiler.py", "native/registry.py", "*/kernels.py", "*/kernels/*.py")
Progress = Callable[[str, int, int], None]
"""Called with a kernel that is being compiled, the number done, and the number of all."""

_CTYPES: dict[str, type[Any]] = {"i64": ctypes.c_int64, "u64": ctypes.c_uint64, "f64": ctypes.c_double}
Array = npt.NDArray[Any]
CACHE_LINE = 64
_HUGE_PAGE = 1 << 21


class Kernel:
    """A compiled function; call it with integers, floats and the addresses of arrays.

    It releases the interpreter's lock, unless it calls Python; exceptions of those calls come through.
    """

    def __init__(self, engine: Any, symbol: str, signature: Signature) -> None:
        # The object code lives as long as its engine.
        self._engine = engine
        types = [_CTYPES.get(name, ctypes.c_void_p) for name in signature.arguments]
        # A function of ctypes' C kind lets go of the interpreter's lock while it runs, a Python one keeps it. The first
        # two arguments are those of numba's own calls: where the result goes, and where an exception would.
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
    """Address of the first element of a contiguous array; the caller keeps the array alive."""
    assert array.flags.c_contiguous
    return int(array.__array_interface__["data"][0])


@cache
def kernel(name: str) -> Kernel:
    """The kernel of that name in `registry`, compiled if need be."""
    if (saved := read(kernel_path(name))) is None:
        saved = _compile_and_keep(name)
    symbol, code = saved
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return Kernel(engine, symbol, KERNELS[name])


def missing_kernels(names: Iterable[str]) -> list[str]:
    """Kernels of these that are missing on this machine, or in a damaged file."""
    return [name for name in names if read(kernel_path(name)) is None]


def ensure_compiled(names: Iterable[str], progress: Progress | None = None) -> None:
    """Compile those of these kernels that are missing or damaged, in a process for each core."""
    if missing := missing_kernels(names):
        # The larger ones are last in the registry: dealt out first, they go to different cores.
        process = subprocess.Popen([sys.executable, "-m", PROGRAM, *reversed(missing)])
        while process.poll() is None:
            time.sleep(0.1)
            left = [name for name in missing if not kernel_path(name).exists()]
            if progress is not None:
                progress(left[-1] if left else missing[0], len(missing) - len(left), len(missing))
        if missing_kernels(missing):
            raise RuntimeError(
                f"kernels could not be compiled: {PROGRAM} ended with status {process.returncode}; if it says no more "
                "above, memory may have been short, and the same command compiles the rest"
            )


def _compile_all(names: Sequence[str]) -> bool:
    """Compile kernels, a share of them in a process for each core; False where a process failed or was killed."""
    from paribus.native.compiler import load_compiler

    # Forked processes share it; libraries of other systems do not survive a fork. Each process has its whole share from
    # the start, so that it ends even if this one is killed.
    load_compiler()
    context: Any = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    cores = os.cpu_count() or 1
    shares = [names[core::cores] for core in range(min(cores, len(names)))]
    processes = [context.Process(target=_compile_share, args=(share,)) for share in shares]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    return not any(process.exitcode for process in processes)


def _compile_share(names: Sequence[str]) -> None:
    for name in names:
        _compile_and_keep(name)


def _compile_and_keep(name: str) -> tuple[str, bytes]:
    from paribus.native.compiler import compile_kernel

    symbol, code = compile_kernel(name)
    keep(name, symbol, code)
    return symbol, code


def kernel_path(name: str) -> Path:
    """Path of the kernel's object code, there or not."""
    return cache_directory() / "kernels" / f"{name}-{fingerprint()}.o"


@cache
def fingerprint() -> str:
    """Digest of all that decides object code: numba, llvmlite, processor, sources of kernels and of their compiler."""
    features: str = llvm.get_host_cpu_features().flatten()
    parts = (version("numba"), version("llvmlite"), llvm.get_default_triple(), llvm.get_host_cpu_name(), features)
    digest = hashlib.sha256("\0".join(parts).encode())
    package = Path(__file__).parents[1]
    for path in sorted(path for pattern in _SOURCES for path in package.glob(pattern)):
        digest.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:32]


@cache
def cache_directory() -> Path:
    """A directory that only this user can write to, since code is run from it; ConfigurationError where none is."""
    configured, home = os.environ.get("PARIBUS_CACHE"), os.environ.get("XDG_CACHE_HOME")
    if configured:
        paths = [Path(configured)]
    else:
        paths = [Path(home) / "paribus"] if home else []
        paths += [Path("~/.cache/paribus").expanduser(), Path(tempfile.gettempdir()) / f"paribus-{os.getuid()}"]
    if (private := next(filter(_is_private, paths), None)) is None:
        raise ConfigurationError(
            f"PARIBUS_CACHE: {' or '.join(map(str, paths))} must be a directory that this user owns and nobody else "
            "can write to, since code is run from it; `chmod 700` it, or name another"
        )
    return private


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


class KernelState:
    """Slots that a kernel reads and writes, and the arrays they point to, kept alive and made larger on demand."""

    def __init__(self, slots: int) -> None:
        self.slots = np.zeros(slots, np.int64)
        self.arrays: dict[int, Array] = {}
        self.address = address(self.slots)

    def __getitem__(self, slot: int) -> int:
        return int(self.slots[slot])

    def __setitem__(self, slot: int, value: int) -> None:
        self.slots[slot] = value

    def hold(self, slot: int, array: Array, size: int | None = None) -> None:
        """Let `slot` point to an array and the slot `size`, if given, hold its length."""
        self.arrays[slot] = array
        self.slots[slot] = address(array)
        if size is not None:
            self.slots[size] = len(array)

    def enlarge(self, slot: int, used: int, size: int, length: int) -> None:
        """Replace an array by a longer one with the same first `used` elements."""
        old = self.arrays[slot]
        larger = np.empty((length, *old.shape[1:]), old.dtype)
        larger[:used] = old[:used]
        self.hold(slot, larger, size)


def table_zeros(shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Zeros that begin where a cache line does, in huge pages from 1 MiB on where the system has them."""
    kind = np.dtype(dtype)
    size = math.prod(shape) * kind.itemsize
    if size < _HUGE_PAGE // 2:
        room, unit = np.zeros(size + CACHE_LINE, dtype=np.uint8), CACHE_LINE
    else:
        # Pages of anonymous memory are zero, and allocated on first write.
        memory = mmap.mmap(-1, size + 2 * _HUGE_PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            memory.madvise(mmap.MADV_HUGEPAGE)
        room, unit = np.frombuffer(memory, dtype=np.uint8), _HUGE_PAGE
    begin = -int(room.__array_interface__["data"][0]) % unit
    return room[begin : begin + size].view(kind).reshape(shape)


if __name__ == "__main__":
    sys.exit(0 if _compile_all(sys.argv[1:]) else 1)
