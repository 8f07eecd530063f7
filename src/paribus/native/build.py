"""Compilation of a kernel by numba, which nothing else imports."""

import importlib
from typing import Any

import numba
from numba import types

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


def compile_kernel(name: str) -> tuple[str, bytes]:
    """Compile one kernel with all it calls; returns its symbol and object code."""
    signature = KERNELS[name]
    module = importlib.import_module(signature.module)
    arguments = tuple(_TYPES[argument] for argument in signature.arguments)
    options = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    compiled = numba.njit(types.int64(*arguments), **options)(getattr(module, name))
    result = compiled.overloads[arguments]
    _, _, (code, _) = result.library.serialize_using_object_code()
    return result.fndesc.llvm_func_name, code


def load_compiler() -> None:
    """Load what numba compiles with, which takes a second."""
    numba.njit(types.int64())(lambda: 0)
