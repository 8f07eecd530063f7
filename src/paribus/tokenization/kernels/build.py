"""Compile the kernels with numba and keep their object code."""

import hashlib
import importlib
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numba
from numba import types

from paribus.tokenization.kernels.native import MANIFEST, Progress
from paribus.tokenization.kernels.registry import KERNELS, Signature

_TYPES: dict[str, Any] = {
    "i64": types.int64,
    "f64": types.float64,
    "u8*": types.CPointer(types.uint8),
    "i32*": types.CPointer(types.int32),
    "i64*": types.CPointer(types.int64),
    "u64*": types.CPointer(types.uint64),
    "f64*": types.CPointer(types.float64),
}


def build(directory: Path, progress: Progress | None = None) -> Path:
    """Compile every kernel into `directory`, which appears whole or not at all; returns it."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=directory.name, dir=directory.parent))
    manifest = {}
    for done, (name, signature) in enumerate(KERNELS.items()):
        if progress is not None:
            progress(name, done, len(KERNELS))
        symbol, code = compile_kernel(name, signature)
        (aside / f"{name}.o").write_bytes(code)
        manifest[name] = {"symbol": symbol, "sha256": hashlib.sha256(code).hexdigest()}
    (aside / MANIFEST).write_text(json.dumps(manifest, indent=2, sort_keys=True), encoding="utf-8")
    return _publish(aside, directory)


def compile_kernel(name: str, signature: Signature) -> tuple[str, bytes]:
    """Symbol and object code of one kernel with all it calls."""
    module = importlib.import_module(f"{__package__}.{signature.module}")
    arguments = tuple(_TYPES[argument] for argument in signature.arguments)
    options = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    compiled = numba.njit(types.int64(*arguments), **options)(getattr(module, name))
    result = compiled.overloads[arguments]
    _, _, (code, _) = result.library.serialize_using_object_code()
    return result.fndesc.llvm_func_name, code


def _publish(aside: Path, directory: Path) -> Path:
    """Rename into place; where another process was faster or the old copy is damaged, the last one whole stays."""
    if directory.exists():
        damaged = Path(tempfile.mkdtemp(prefix="damaged", dir=directory.parent))
        directory.replace(damaged / directory.name)
        shutil.rmtree(damaged)
    try:
        aside.replace(directory)
    except OSError:
        shutil.rmtree(aside)
    return directory
