"""Units, the smallest pieces of a vocabulary: UTF-8 bytes, or characters."""

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
