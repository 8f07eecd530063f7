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
    function.argtypes = [ctypes.py_object, ctypes.c_void_p]
    return function


def text_addresses(texts: Sequence[str]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Address and size in bytes of the UTF-8 of each text; valid while the texts live.

    DataError for a text that has no UTF-8.
    """
    function = _as_utf8()
    addresses = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
    sizes = addresses.copy()
    size = sizes.__array_interface__["data"][0]
    # For ASCII, which is most text, the size is the length.
    wide = [index for index, text in enumerate(texts) if not text.isascii()]
    for index in wide:
        try:
            function(texts[index], size + 8 * index)
        except UnicodeEncodeError:
            utf8(texts[index])
            raise
    addresses[:] = [function(text, None) for text in texts]
    return addresses, sizes


def text_address(text: str) -> tuple[int, int]:
    """Address and size in bytes of the UTF-8 of one text."""
    size = ctypes.c_ssize_t()
    try:
        return _as_utf8()(text, ctypes.addressof(size)), size.value
    except UnicodeEncodeError:
        utf8(text)
        raise
