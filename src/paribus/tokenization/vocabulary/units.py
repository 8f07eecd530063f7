"""Units, the smallest pieces of a vocabulary: UTF-8 bytes, in GPT-2's printable characters too, or characters."""

from typing import Literal

from paribus.errors import DataError

UnitKind = Literal["byte", "character"]
Unknown = Literal["byte_fallback", "token", "refuse"]
"""What a character outside a character alphabet becomes: its bytes, one unknown token, or an error."""

UNKNOWN_TOKEN = "<unk>"


def utf8(text: str) -> bytes:
    """UTF-8 of `text`; DataError where it holds a lone surrogate."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise DataError(
            f"the text has no UTF-8: character {error.start} is the lone surrogate U+{ord(text[error.start]):04X}"
        ) from error


_PRINTABLE = (*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAC + 1), *range(0xAE, 0xFF + 1))


def byte_characters() -> list[str]:
    """The character of each byte: itself where it is printable Latin-1, else U+0100 and up in byte order."""
    others = iter(range(256, 512))
    printable = frozenset(_PRINTABLE)
    return [chr(byte if byte in printable else next(others)) for byte in range(256)]
