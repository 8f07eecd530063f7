"""GPT-2's printable characters for bytes, in which byte-level vocabularies are written for other libraries."""

_PRINTABLE = (*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAC + 1), *range(0xAE, 0xFF + 1))


def byte_characters() -> list[str]:
    """The character of each byte: itself where it is printable Latin-1, else U+0100 and up in byte order."""
    others = iter(range(256, 512))
    printable = frozenset(_PRINTABLE)
    return [chr(byte if byte in printable else next(others)) for byte in range(256)]
