"""Memory for tables that are looked up at random: whole cache lines, and huge pages where they are large."""

import math
import mmap
from typing import Any

import numpy as np
import numpy.typing as npt

CACHE_LINE = 64
_HUGE_PAGE = 1 << 21


def table_zeros(shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Zeros that begin where a cache line does, in huge pages from 1 MiB on where the system has them."""
    kind = np.dtype(dtype)
    size = math.prod(shape) * kind.itemsize
    if size < _HUGE_PAGE // 2:
        room, unit = np.zeros(size + CACHE_LINE, dtype=np.uint8), CACHE_LINE
    else:
        room, unit = _mapped(size + 2 * _HUGE_PAGE), _HUGE_PAGE
    begin = -int(room.__array_interface__["data"][0]) % unit
    return room[begin : begin + size].view(kind).reshape(shape)


def _mapped(size: int) -> npt.NDArray[np.uint8]:
    """Zeros of the system's own, of which only those that are written to take memory."""
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        memory.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(memory, dtype=np.uint8)
