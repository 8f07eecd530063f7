"""Compile kernels with numba; as a program, those that its arguments name, in a process a core."""

import importlib
import multiprocessing
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numba
from numba import types

from paribus.native.cache import keep
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


def compile_to_cache(name: str) -> tuple[str, bytes]:
    """Compile one kernel with all it calls and keep it; returns its symbol and object code."""
    signature = KERNELS[name]
    module = importlib.import_module(signature.module)
    arguments = tuple(_TYPES[argument] for argument in signature.arguments)
    options = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    compiled = numba.njit(types.int64(*arguments), **options)(getattr(module, name))
    result = compiled.overloads[arguments]
    _, _, (code, _) = result.library.serialize_using_object_code()
    keep(name, result.fndesc.llvm_func_name, code)
    return result.fndesc.llvm_func_name, code


def compile_all(names: Sequence[str]) -> None:
    """Compile kernels, as many at once as there are cores; one that fails is raised once the others are kept."""
    # Loading what numba compiles with takes a second, which forked processes have in common; on other systems what is
    # forked may not use their libraries.
    numba.njit(types.int64())(lambda: 0)
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    with ProcessPoolExecutor(min(len(names), os.cpu_count() or 1), mp_context=context) as pool:
        compiled = [pool.submit(compile_to_cache, name) for name in names]
    for kernel in compiled:
        kernel.result()


if __name__ == "__main__":
    compile_all(sys.argv[1:])
