"""Characters as integers: codepoints, with one code for every line end, and the class of each.

A span never holds characters of two classes, nor any of the class `OTHER`: punctuation, symbols, whitespace, controls.
"""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import regex

Codes = npt.NDArray[np.uint32]

LINE_END = 0x110000
"""Stands for every line end, the ends of a text included; no codepoint."""
CODE_BITS = 21
"""Bits that hold every code."""
OTHER, IDEOGRAPH, LETTER, DIGIT = range(4)

LINE_BREAKS = "\n\v\f\r\x1c\x1d\x1e\x85\u2028\u2029"
"""Where `str.splitlines` breaks."""
_LINE_BREAK_CODES = np.array([ord(character) for character in LINE_BREAKS], dtype=np.uint32)
_CLASSES = (
    (IDEOGRAPH, regex.compile(r"[\p{Han}&&[\p{L}\p{N}]]", flags=regex.V1)),
    (DIGIT, regex.compile(r"\p{N}")),
    (LETTER, regex.compile(r"[\p{L}\p{M}]")),
)


def encode(texts: Iterable[str]) -> Codes:
    """Codes of texts one after another, a line end after each."""
    joined = "\n".join([*texts, ""])
    codes = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.uint32)
    codes[np.isin(codes, _LINE_BREAK_CODES)] = LINE_END
    return codes


def decode(codes: Codes) -> list[str]:
    """The strings of rows of codepoints, shape (n, length)."""
    rows, length = codes.shape
    joined = codes.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")
    return [joined[i : i + length] for i in range(0, rows * length, length)]


def class_of(character: str) -> int:
    """Class of one character; combining marks go with the letters, the ideographic zero with the ideographs."""
    return next((number for number, pattern in _CLASSES if pattern.match(character)), OTHER)


def code_classes(observed: npt.NDArray[np.int64], *, alike: bool = False) -> npt.NDArray[np.uint8]:
    """Class by code, shape (2 ** CODE_BITS,), of the observed codes; `OTHER` for the rest and for line ends.

    Where all characters are `alike`, they have one class that is not `OTHER`.
    """
    table = np.full(1 << CODE_BITS, OTHER, dtype=np.uint8)
    for code in observed.tolist():
        if code != LINE_END:
            table[code] = LETTER if alike else class_of(chr(code))
    return table
