"""Compile kernels with numba; as a program, those named on the command line."""

import importlib
import sys
from typing import Any

import numba
from numba import types

from paribus.native.cache import keep
from paribus.native.registry import KERNELS, Signature

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


def compile_kernel(name: str, signature: Signature) -> tuple[str, bytes]:
    """Symbol and object code of one kernel with all it calls."""
    module = importlib.import_module(signature.module)
    arguments = tuple(_TYPES[argument] for argument in signature.arguments)
    options = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    compiled = numba.njit(types.int64(*arguments), **options)(getattr(module, name))
    result = compiled.overloads[arguments]
    _, _, (code, _) = result.library.serialize_using_object_code()
    return result.fndesc.llvm_func_name, code


def compile_to_cache(name: str) -> tuple[str, bytes]:
    """Compile one kernel in this process and keep it; returns its symbol and object code."""
    symbol, code = compile_kernel(name, KERNELS[name])
    keep(name, symbol, code)
    return symbol, code


if __name__ == "__main__":
    for wanted in sys.argv[1:]:
        compile_to_cache(wanted)
