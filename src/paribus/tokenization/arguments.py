"""What callers of the library give, judged before it is iterated: a string is a sequence of strings too."""

import operator
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from paribus.errors import DataError


def one_text(text: Any, what: str) -> str:
    """`text` if it is a string; TypeError that says what would be right."""
    if isinstance(text, str):
        return text
    if isinstance(text, bytes | bytearray | memoryview):
        raise TypeError(f"{what} takes a string, not {_kind(text)}: decode it first, or take encode_bytes")
    several = ": encode_batch takes several" if isinstance(text, list | tuple) else ""
    raise TypeError(f"{what} takes a string, not {_kind(text)}{several}")


def listed_texts(texts: Any, what: str) -> list[str]:
    """The texts as a list; TypeError for one text, and for anything in it that is no string."""
    several = _several(texts, what)
    listed: list[Any] = several if isinstance(several, list) else list(several)
    if not set(map(type, listed)) <= {str}:
        listed = list(_strings(listed, what))
    return listed


def stream_of_texts(texts: Any, what: str) -> Iterator[str]:
    """The texts as they come; TypeError for one text at once, and for what is no string when it is reached."""
    return _strings(_several(texts, what), what)


def plain_bytes(data: Any) -> bytes:
    """`data` if it is a run of bytes; TypeError otherwise, for a string too."""
    try:
        size = memoryview(data).itemsize
    except TypeError:
        hint = ": encode takes strings" if isinstance(data, str) else ""
        raise TypeError(f"encode_bytes takes bytes, not {_kind(data)}{hint}") from None
    if size != 1:
        raise TypeError(f"encode_bytes takes bytes, not items of {size} bytes each")
    return data  # type: ignore[no-any-return]


def names_of_tokens(names: Any, what: str) -> tuple[str, ...]:
    """Several strings; TypeError for a single one, whose characters would be taken."""
    if isinstance(names, str | bytes):
        raise TypeError(f"{what} takes several strings, not {names!r} alone: write [{names!r}]")
    if names is None or not isinstance(names, Iterable):
        raise TypeError(f"{what} takes several strings, not {_kind(names)}; () for none")
    return tuple(names)


def whole_number(value: Any, what: str) -> int:
    """`value` if it is an integer of Python or numpy; TypeError otherwise, for true and false too."""
    if isinstance(value, bool | np.bool_) or not hasattr(value, "__index__"):
        raise TypeError(f"{what} takes a whole number, not {value!r}")
    return operator.index(value)


def token_ids(ids: Any, size: int) -> npt.NDArray[np.int64]:
    """Token ids as an array, shape (n,); TypeError where they are no integers, DataError outside [0, size)."""
    if isinstance(ids, str | bytes | bytearray) or not isinstance(ids, Iterable):
        raise TypeError(f"decode takes several token ids, not {_kind(ids)}: [97] for one")
    given = ids if isinstance(ids, np.ndarray) else _array(list(ids))
    if given.ndim != 1:
        raise TypeError(f"decode takes the ids of one text, not an array of shape {given.shape}: decode row by row")
    if not given.size:
        return np.zeros(0, dtype=np.int64)
    if given.dtype.kind not in "iu" and not _are_integers(given):
        shown = next((item for item in given.tolist() if type(item) is not int), given[0])
        raise TypeError(f"token ids are whole numbers, not {shown!r} ({given.dtype})")
    low, high = int(given.min()), int(given.max())
    if low < 0 or high >= size:
        raise DataError(f"token ids must lie in 0..{size - 1}, not {low}..{high}")
    return given.astype(np.int64)


def _array(listed: list[Any]) -> npt.NDArray[Any]:
    """Without the conversion that makes a true one, or text of numbers."""
    kinds = set(map(type, listed))
    if kinds <= {int} or (len(kinds) == 1 and not kinds & {bool, str, bytes}):
        return np.asarray(listed)
    found = np.empty(len(listed), dtype=object)
    found[:] = listed
    return found


def _are_integers(given: npt.NDArray[Any]) -> bool:
    """Whether objects are integers all the same: of numpy's kinds, or too large for them."""
    return given.dtype == object and all(
        hasattr(item, "__index__") and not isinstance(item, bool | np.bool_) for item in given.tolist()
    )


def _several(texts: Any, what: str) -> Iterable[Any]:
    if isinstance(texts, str):
        raise TypeError(f"{what} takes several texts, not one string, whose characters it would take: write [text]")
    if isinstance(texts, bytes | bytearray | Mapping) or not isinstance(texts, Iterable):
        raise TypeError(f"{what} takes several texts (a list, a generator), not {_kind(texts)}")
    return texts


def _strings(texts: Iterable[Any], what: str) -> Iterator[str]:
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            hint = "; decode it first" if isinstance(text, bytes | bytearray) else ""
            raise TypeError(f"{what} takes strings, and text {number} is {_kind(text)}{hint}")
        yield text


def _kind(value: Any) -> str:
    return "None" if value is None else f"{type(value).__name__}"
