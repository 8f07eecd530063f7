"""Lines of a byte stream with their numbers and offsets, decoded strictly."""

import codecs
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from paribus.corpus.readers.record import RecordProblem


@dataclass(frozen=True, slots=True)
class TextLine:
    """A line with its terminator, its number from 1 and the offset of its first byte in the decompressed file."""

    number: int
    offset: int
    data: bytes


def lines(stream: BinaryIO) -> Iterator[TextLine]:
    """Lines ended by a line feed; a byte order mark at the start of the file is no part of the first one."""
    offset = 0
    for number, data in enumerate(stream, 1):
        mark = len(codecs.BOM_UTF8) if number == 1 and data.startswith(codecs.BOM_UTF8) else 0
        yield TextLine(number, offset + mark, data[mark:])
        offset += len(data)


def decode(data: bytes, *, line: int, offset: int) -> str | RecordProblem:
    """The text of UTF-8 `data` that begins at `line` and byte `offset`, or where it stops to be UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        number = line + data.count(b"\n", 0, error.start)
        column = error.start - (data.rfind(b"\n", 0, error.start) + 1)
        message = (
            f"invalid UTF-8: byte 0x{data[error.start]:02x} at byte {column} of the line, "
            f"byte {offset + error.start} of the text ({error.reason})"
        )
        return RecordProblem(number, "invalid_utf8", message)
