"""Compile kernels with numba; as a program, those that its arguments name, in a process a core."""

import importlib
import multiprocessing
import os
import sys
from collections.abc import Sequence
from typing import Any

import numba
from numba import types

from paribus.native.loader import keep
from paribus.native.registry import KERNELS

_TYPES: dict[str, Any] = {
    "i64": types.int64,
    "u64": types.uint64,
    "f64": types.float64,
    "u8*": types.CPointer(types.uint8),
    "u16*": types.CPointer(types.uint16),
    "i32*": types.CPointer(types.int32),
    "u32*": types.CPointer(types.uint32),
    "f32*": types.CPointer(types.float32),
    "i64*": types.CPointer(types.int64),
    "u64*": types.CPointer(types.uint64),
    "f64*": types.CPointer(types.float64),
}


def compile_to_cache(name: str) -> None:
    """Compile one kernel with all it calls, and keep it."""
    signature = KERNELS[name]
    module = importlib.import_module(signature.module)
    arguments = tuple(_TYPES[argument] for argument in signature.arguments)
    options = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    compiled = numba.njit(types.int64(*arguments), **options)(getattr(module, name))
    result = compiled.overloads[arguments]
    _, _, (code, _) = result.library.serialize_using_object_code()
    keep(name, result.fndesc.llvm_func_name, code)


def compile_all(names: Sequence[str]) -> bool:
    """Compile kernels, a share of them in a process a core; False where one failed and wrote its traceback."""
    # Loading what numba compiles with takes a second, which forked processes have in common; on other systems what is
    # forked may not use their libraries. None of them waits for work, so that each ends whatever becomes of this one.
    numba.njit(types.int64())(lambda: 0)
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
        compile_to_cache(name)


if __name__ == "__main__":
    sys.exit(0 if compile_all(sys.argv[1:]) else 1)
