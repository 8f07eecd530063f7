"""Compile kernels with numba; as a program, those of each argument, names with commas, in a process of their own."""

import importlib
import os
import sys
import traceback
from collections.abc import Sequence
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


def compile_shares(shares: Sequence[str]) -> bool:
    """Compile the kernels of each share in a process that is forked for it, the first in this one; whether all went.

    Loading what numba compiles with takes a second, which the processes have in common.
    """
    numba.njit(types.int64())(lambda: 0)
    children = [_forked(share) for share in shares[1:]]
    _compile_share(shares[0])
    ended = [os.waitpid(child, 0)[1] for child in children]
    return not any(ended)


def _compile_share(share: str) -> None:
    for name in share.split(","):
        compile_to_cache(name)


def _forked(share: str) -> int:
    child = os.fork()
    if child == 0:
        try:
            _compile_share(share)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return child


if __name__ == "__main__":
    sys.exit(0 if compile_shares(sys.argv[1:]) else 1)
