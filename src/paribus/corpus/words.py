"""What a word of a text is, in any script: of these are the runs made by which texts are compared."""

from collections.abc import Sequence
from functools import cache

import numpy as np
import numpy.typing as npt
import regex

_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
WORD = regex.compile(rf"[{_UNSPACED}]\p{{M}}*|[\w--[{_UNSPACED}]]+", regex.VERSION1)
"""A word, or one character, with its marks, of a script that is written without spaces."""
SPACED, UNSPACED, MARK = 1, 2, 4
"""Codes of `word_classes`: what a word is made of, what is a word alone, and what stays with the latter."""
_CLASSES = {SPACED: rf"[\w--[{_UNSPACED}]]", UNSPACED: rf"[{_UNSPACED}]", MARK: r"\p{M}"}


def words(text: str) -> Sequence[str]:
    """Words of a text in lower case."""
    found: list[str] = WORD.findall(text.lower())
    return found


@cache
def word_classes() -> npt.NDArray[np.uint8]:
    """The sum of codes of each codepoint, shape (0x110000,), by which kernels find what `WORD` finds."""
    table = np.zeros(0x110000, np.uint8)
    every = np.arange(0x110000, dtype="<u4").tobytes().decode("utf-32-le", "surrogatepass")
    for code, pattern in _CLASSES.items():
        for run in regex.finditer(f"{pattern}+", every, regex.VERSION1):
            table[run.start() : run.end()] += code
    table.flags.writeable = False
    return table
