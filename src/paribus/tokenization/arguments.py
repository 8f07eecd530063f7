"""Checks of what callers of the library give: a string is a sequence of strings too, and kernels read strings only."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from paribus.errors import DataError


def one_text(text: Any, what: str) -> str:
    """`text` if it is a string, else TypeError."""
    if not isinstance(text, str):
        raise TypeError(f"{what}: a text is a string, not {type(text).__name__}")
    return text


def listed_texts(texts: Iterable[str], what: str) -> list[str]:
    """The texts as a list. TypeError for a single string, and for a text that is no string."""
    listed = texts if isinstance(texts, list) else list(several_strings(texts, what))
    return listed if set(map(type, listed)) <= {str} else list(stream_of_texts(listed, what))


def stream_of_texts(texts: Iterable[str], what: str) -> Iterator[str]:
    """The texts as they come. TypeError for a single string at once, for a text that is no string when it comes."""
    return (one_text(text, what) for text in several_strings(texts, what))


def several_strings(strings: Iterable[str], what: str) -> Iterable[str]:
    """`strings`, but TypeError for a single one, whose characters would be taken."""
    if isinstance(strings, str | bytes):
        raise TypeError(f"{what} takes several strings, not a single one, whose characters it would take: write [text]")
    return strings


def token_ids(ids: Iterable[int], size: int) -> npt.NDArray[np.int64]:
    """Token ids as an array, shape (n,). TypeError where they are no integers, DataError outside [0, size)."""
    given = ids if isinstance(ids, np.ndarray) else np.asarray(list(ids))
    if given.ndim != 1:
        raise TypeError(f"decode takes the ids of one text, not an array of shape {given.shape}: decode row by row")
    if not given.size:
        return np.zeros(0, dtype=np.int64)
    if given.dtype.kind not in "iu":
        raise TypeError(f"token ids are whole numbers, not {given.dtype}")
    low, high = int(given.min()), int(given.max())
    if low < 0 or high >= size:
        raise DataError(f"token ids must lie in 0..{size - 1}, not {low}..{high}")
    return given.astype(np.int64)
