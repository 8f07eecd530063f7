"""Foreign text on a terminal: on one line, shortened to what there is room for, and unable to do anything there."""

import unicodedata

from rich.cells import cell_len

MORE = "…"
_TURNING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Marks that turn the direction of the text around them, so that it reads otherwise than it is."""
_A_WORD = 12
"""Cells within which a text is cut at a space rather than in a word."""


def one_line(text: str) -> str:
    """Text with its whitespace made single spaces, and an escape for each character that a terminal would obey."""
    return "".join(_shown(character) for character in " ".join(text.split()))


def _shown(character: str) -> str:
    if character in _TURNING or unicodedata.category(character) in ("Cc", "Cs"):
        return character.encode("unicode_escape").decode("ascii")
    return character


def beginning(text: str, cells: int) -> str:
    """As much of the beginning of a text, on one line, as these cells of a terminal hold; `…` for the rest."""
    line = one_line(text[: 8 * cells])
    whole = len(text) <= 8 * cells and cell_len(line) <= cells
    return line if whole else _at_a_space(_kept(line, cells - 1)) + MORE


def end(text: str, cells: int) -> str:
    """As much of the end of a text, on one line, as these cells of a terminal hold; `…` before it for the rest."""
    line = one_line(text[-8 * cells :])
    whole = len(text) <= 8 * cells and cell_len(line) <= cells
    return line if whole else MORE + _at_a_space(_kept(line[::-1], cells - 1))[::-1]


def _kept(line: str, cells: int) -> str:
    """The first characters of a line that these cells hold."""
    for place, character in enumerate(line):
        cells -= cell_len(character)
        if cells < 0:
            return line[:place]
    return line


def _at_a_space(line: str) -> str:
    head, space, tail = line.rpartition(" ")
    return head if space and cell_len(tail) <= _A_WORD else line
