"""Shingles: runs of consecutive words, as a set (Broder, 1997)."""

from collections.abc import Sequence

import regex

_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
WORD = regex.compile(rf"[{_UNSPACED}]\p{{M}}*|[\w--[{_UNSPACED}]]+", regex.VERSION1)
"""A word, or one character, with its marks, of a script that is written without spaces."""
NO_WORD = "\0"
"""Begins the one shingle of a text without a word; no word holds it."""


def words(text: str) -> Sequence[str]:
    """Words of a text in lower case."""
    found: list[str] = WORD.findall(text.lower())
    return found


def shingles(text: str, size: int) -> set[bytes]:
    """The sets of `size` consecutive words, each as UTF-8 with spaces between.

    A text of fewer words is one shingle of them all, one without any word a shingle of the whole text.
    """
    found = words(text)
    if not found:
        return {(NO_WORD + text).encode()}
    return {" ".join(found[start : start + size]).encode() for start in range(max(1, len(found) - size + 1))}
