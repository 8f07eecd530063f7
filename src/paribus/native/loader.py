"""Compiled kernels: loading, compiling those that this machine lacks, and the memory that kernels share with Python.

Loading takes llvmlite and some milliseconds; numba is imported only to compile.
"""

import ctypes
import math
import mmap
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import numpy.typing as npt

from paribus.native.cache import COMPILER, kernel_path, read
from paribus.native.registry import KERNELS, Signature

Progress = Callable[[str, int, int], None]
"""Called with the kernel being compiled, how many are done, and how many there are."""

_CTYPES: dict[str, type[Any]] = {"i64": ctypes.c_int64, "u64": ctypes.c_uint64, "f64": ctypes.c_double}
Array = npt.NDArray[Any]
CACHE_LINE = 64
_HUGE_PAGE = 1 << 21


class Kernel:
    """A compiled function; call it with integers, floats and the addresses of arrays.

    Other threads run meanwhile, unless it calls Python; what that raises comes through.
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
        from paribus.native.build import compile_to_cache

        saved = compile_to_cache(name)
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


def ensure_compiled(names: Iterable[str], progress: Progress | None = None) -> int:
    """Compile those of these kernels that are missing or damaged, in one process a core; returns how many."""
    if missing := missing_kernels(names):
        # The larger ones stand last in the registry: dealt first, they come to different cores.
        process = subprocess.Popen([sys.executable, "-m", COMPILER, *reversed(missing)])
        while process.poll() is None:
            time.sleep(0.1)
            left = [name for name in missing if not kernel_path(name).exists()]
            if progress is not None:
                progress(left[0] if left else missing[-1], len(missing) - len(left), len(missing))
        if process.returncode != 0:
            raise RuntimeError(
                f"kernels could not be compiled: {COMPILER} ended with status {process.returncode}; if it says no more "
                "above, memory may have been short, and the same command compiles the rest"
            )
    return len(missing)


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
