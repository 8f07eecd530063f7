"""Letters, marks, numbers and spaces of Unicode, pinned, so that a text has the same pre-tokens on every machine.

`unicode_classes.json` holds the ranges of `\\p{L}`, `\\p{N}`, `\\p{M}` and `\\s`; the version of Unicode is in it.
"""

import json
from functools import cache
from importlib.resources import files

import numpy as np
import numpy.typing as npt

CODES = {"letters": 1, "numbers": 2, "spaces": 4}
"""Codes of `kernels.classes`."""
_WITH_MARKS = ("punctuation",)
"""Patterns in which a mark, such as a vowel sign of Devanagari or an accent, is as much of a word as a letter is."""


def class_table(pattern: str = "none") -> npt.NDArray[np.uint8]:
    """Code of each codepoint in a pattern, shape (0x110000,); 0 for everything else."""
    return _table(pattern in _WITH_MARKS)


@cache
def _table(marks: bool) -> npt.NDArray[np.uint8]:
    described = json.loads(
        (files("paribus.tokenization.pretokenize") / "unicode_classes.json").read_text(encoding="utf-8")
    )
    table = np.zeros(0x110000, dtype=np.uint8)
    for name, code in CODES.items():
        for first, last in described[name]:
            table[first : last + 1] = code
    for first, last in described["marks"] if marks else ():
        table[first : last + 1] = CODES["letters"]
    table.flags.writeable = False
    return table
