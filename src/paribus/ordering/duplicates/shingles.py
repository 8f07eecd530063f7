"""Shingles: runs of consecutive words, as a set (Broder, 1997)."""

from paribus.corpus.words import words

NO_WORD = "\0"
"""Begins the one shingle of a text without a word; no word holds it."""


def shingles(text: str, size: int) -> set[bytes]:
    """The sets of `size` consecutive words, each as UTF-8 with spaces between.

    A text of fewer words is one shingle of them all, one without any word a shingle of the whole text.
    """
    found = words(text)
    if not found:
        return {(NO_WORD + text).encode()}
    return {" ".join(found[start : start + size]).encode() for start in range(max(1, len(found) - size + 1))}
