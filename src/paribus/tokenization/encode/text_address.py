"""Where Python keeps the UTF-8 of a string, so that kernels read it without a copy."""

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from paribus.errors import DataError
from paribus.native.loader import address, kernel
from paribus.tokenization.vocabulary.units import utf8

if TYPE_CHECKING:
    import pyarrow as pa

Int64s = npt.NDArray[np.int64]


@cache
def _as_utf8() -> Any:
    function = ctypes.pythonapi.PyUnicode_AsUTF8AndSize
    function.restype = ctypes.c_void_p
    function.argtypes = [ctypes.py_object, ctypes.c_void_p]
    return function


@cache
def _as_utf8_address() -> int:
    return ctypes.cast(ctypes.pythonapi.PyUnicode_AsUTF8AndSize, ctypes.c_void_p).value or 0


def text_addresses(texts: Sequence[str]) -> tuple[Int64s, Int64s]:
    """Address and size in bytes of the UTF-8 of each text; valid while the texts live.

    DataError for a text that has no UTF-8.
    """
    # An array of objects is an array of their addresses.
    strings = np.empty(len(texts), dtype=object)
    strings[:] = texts
    addresses, sizes = np.empty((2, len(texts)), dtype=np.int64)
    try:
        kernel("find_texts")(address(strings), len(texts), _as_utf8_address(), address(addresses), address(sizes))
    except UnicodeEncodeError:
        for text in texts:
            utf8(text)
        raise
    return addresses, sizes


def arrow_addresses(texts: "pa.StringArray | pa.LargeStringArray") -> tuple[Int64s, Int64s]:
    """Address and size in bytes of each text of an Arrow array; valid while it lives. DataError as `arrow_texts`."""
    _check_arrow(texts)
    if len(texts) == 0:
        # An array without texts may have no buffer of places.
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    width = np.dtype(np.int64 if str(texts.type) == "large_string" else np.int32)
    _, places, data = texts.buffers()
    ends = np.frombuffer(places, dtype=width, count=len(texts) + 1, offset=texts.offset * width.itemsize)
    ends = ends.astype(np.int64)
    return (data.address if data is not None else 0) + ends[:-1], np.diff(ends)


def arrow_texts(texts: "pa.StringArray | pa.LargeStringArray") -> list[str]:
    """The texts of an Arrow array. DataError for one of another type than string or large_string, or with nulls."""
    _check_arrow(texts)
    return texts.to_pylist()  # type: ignore[no-any-return]


def _check_arrow(texts: Any) -> None:
    import pyarrow as pa

    if isinstance(texts, pa.ChunkedArray):
        raise DataError("texts are a pyarrow.ChunkedArray; give one of its `chunks` at a time, or `combine_chunks()`")
    if not isinstance(texts, pa.Array):
        raise DataError(f"texts must be a pyarrow.Array, not {type(texts).__name__}; encode_batch takes strings")
    if not isinstance(texts, pa.StringArray | pa.LargeStringArray):
        raise DataError(
            f"texts must be an Arrow array of type string or large_string, not {texts.type}; "
            "`cast(pyarrow.large_string())` makes one of texts"
        )
    if texts.null_count:
        raise DataError(
            f"text {texts.is_null().index(True).as_py()} is null ({texts.null_count} of {len(texts)} are); "
            "leave nulls out with `drop_null()`, or make them empty texts with `fill_null('')`"
        )


def text_address(text: str) -> tuple[int, int]:
    """Address and size in bytes of the UTF-8 of one text."""
    size = ctypes.c_ssize_t()
    try:
        return _as_utf8()(text, ctypes.addressof(size)), size.value
    except UnicodeEncodeError:
        utf8(text)
        raise
