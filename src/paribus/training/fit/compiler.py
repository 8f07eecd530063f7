"""What compiled layers need of a machine beside PyTorch, looked for without importing it."""

import os
import shutil
import sysconfig
from pathlib import Path


def lacking(*, gpu: bool) -> str | None:
    """What PyTorch compiles layers with and this machine has not; None where all is there."""
    if not gpu:
        return None if _is_here("CXX", "g++", "clang++") else "a C++ compiler (CXX, g++ or clang++)"
    if not _is_here("CC", "gcc", "clang"):
        return "a C compiler (CC, gcc or clang)"
    # Triton compiles what starts each kernel as an extension of Python.
    has_headers = (Path(sysconfig.get_path("include")) / "Python.h").is_file()
    return None if has_headers else "Python.h, Python's headers for C,"


def _is_here(variable: str, *names: str) -> bool:
    """What the variable names is taken as it is, so another compiler is no help where that is missing."""
    chosen = os.environ.get(variable)
    return any(map(shutil.which, names if chosen is None else (chosen,)))
