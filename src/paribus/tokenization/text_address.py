"""Where Python keeps the UTF-8 of a string, so that kernels read it without a copy."""

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from paribus.tokenization.units import utf8


@cache
def _as_utf8() -> Any:
    function = ctypes.pythonapi.PyUnicode_AsUTF8AndSize
    function.restype = ctypes.c_void_p
    function.argtypes = [ctypes.py_object, ctypes.POINTER(ctypes.c_ssize_t)]
    return function


def text_addresses(texts: Sequence[str]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Address and size in bytes of the UTF-8 of each text; valid while the texts live.

    DataError for a text that has no UTF-8.
    """
    function, size = _as_utf8(), ctypes.c_ssize_t()
    reference = ctypes.byref(size)
    found = np.empty((2, len(texts)), dtype=np.int64)
    addresses, sizes = found
    for index, text in enumerate(texts):
        try:
            addresses[index] = function(text, reference)
        except UnicodeEncodeError:
            utf8(text)
            raise
        sizes[index] = size.value
    return addresses, sizes
