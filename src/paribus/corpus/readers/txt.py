"""Plain text, where a document is a file, a line, or a paragraph between blank lines.

Text is taken as it stands; only a byte order mark at the start of the file and the line break after a line or
paragraph are left out.
"""

from collections.abc import Iterator
from itertools import groupby
from typing import BinaryIO, Literal

from paribus.corpus.readers.lines import TextLine, decode, lines
from paribus.corpus.readers.record import Item, Record, RecordProblem, checked

Unit = Literal["file", "line", "paragraph"]


def read_txt(stream: BinaryIO, document: Unit) -> Iterator[Item]:
    """Records of a stream of text; positions are the numbers of their first lines."""
    if document == "file":
        whole = list(lines(stream))
        yield _item(whole, keep_end=True)
        return
    if document == "line":
        yield from (_item([line], keep_end=False) for line in lines(stream) if _has_text(line))
        return
    for has_text, paragraph in groupby(lines(stream), _has_text):
        if has_text:
            yield _item(list(paragraph), keep_end=False)


def read_lines(stream: BinaryIO) -> Iterator[Item]:
    """A record for every line, and a problem for a blank one, so that two files stay aligned."""
    for line in lines(stream):
        yield _item([line] if _has_text(line) else [], keep_end=False, number=line.number)


def _has_text(line: TextLine) -> bool:
    return bool(line.data) and not line.data.isspace()


def _item(part: list[TextLine], *, keep_end: bool, number: int = 1) -> Item:
    if not part:
        return RecordProblem(number, "empty_text", "the text is empty")
    data = b"".join(line.data for line in part)
    if not keep_end:
        data = data.removesuffix(b"\n").removesuffix(b"\r")
    text = decode(data, line=part[0].number, offset=part[0].offset)
    return text if isinstance(text, RecordProblem) else checked(Record(part[0].number, None, text))
