"""Units, the smallest pieces of a vocabulary, as characters of a Python string.

A pre-token becomes a string with one character a unit, so tokens are strings, slices are spans and dictionaries
look them up. Byte units are U+0000 to U+00FF. Character units stand for themselves; a byte of a character outside
the alphabet is U+DC00 + byte and the unknown unit is U+D800: surrogates, which no valid text contains.
"""

from collections.abc import Collection, Iterable
from typing import Literal, Protocol

from paribus.errors import DataError

UnitKind = Literal["byte", "character"]
Unknown = Literal["byte_fallback", "token", "refuse"]

BYTE_ALPHABET = tuple(map(chr, range(256)))
FALLBACK_ALPHABET = tuple(chr(0xDC00 + byte) for byte in range(256))
UNKNOWN_UNIT = "\ud800"
UNKNOWN_TOKEN = "<unk>"


class Units(Protocol):
    """How a pre-token becomes units."""

    def split(self, piece: str) -> str:
        """`piece` as a string of units; DataError if it is no valid Unicode or cannot be represented."""


class ByteUnits:
    """UTF-8 bytes."""

    def split(self, piece: str) -> str:
        return utf8(piece).decode("latin-1")


class CharacterUnits:
    """Unicode characters of an alphabet; others become their bytes, the unknown unit, or are refused."""

    def __init__(self, alphabet: Collection[str], unknown: Unknown) -> None:
        self._alphabet = frozenset(alphabet)
        self._unknown = unknown

    def split(self, piece: str) -> str:
        if self._alphabet.issuperset(piece):
            return piece
        return "".join(unit if unit in self._alphabet else self._outside(unit) for unit in piece)

    def _outside(self, character: str) -> str:
        encoded = utf8(character)
        if self._unknown == "byte_fallback":
            return "".join(FALLBACK_ALPHABET[byte] for byte in encoded)
        if self._unknown == "token":
            return UNKNOWN_UNIT
        raise DataError(
            f"character {character!r} (U+{ord(character):04X}) is not in the tokenizer's alphabet and it was trained "
            "without a way to represent others; train with unknown=byte_fallback or unknown=token"
        )


def utf8(text: str) -> bytes:
    """UTF-8 of `text`; DataError where it holds a lone surrogate."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise DataError(
            f"the text has no UTF-8: character {error.start} is the lone surrogate U+{ord(text[error.start]):04X}"
        ) from error


def characters(pieces: Iterable[str]) -> list[str]:
    """The distinct characters of `pieces` by codepoint; DataError on a lone surrogate."""
    alphabet = sorted(set().union(*pieces))
    utf8("".join(alphabet))
    return alphabet
