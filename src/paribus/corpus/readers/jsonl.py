"""JSON lines: one object a line. Blank lines separate nothing and are passed over."""

import json
from collections.abc import Iterator
from typing import BinaryIO

from paribus.corpus.readers.lines import TextLine, decode, lines
from paribus.corpus.readers.record import Fields, Item, RecordProblem, record_of


def read_jsonl(stream: BinaryIO, fields: Fields) -> Iterator[Item]:
    """Records of a stream of JSON lines; positions are line numbers."""
    for line in lines(stream):
        if not line.data.isspace() and line.data:
            yield _item(line, fields)


def _item(line: TextLine, fields: Fields) -> Item:
    text = decode(line.data.rstrip(b"\r\n"), line=line.number, offset=line.offset)
    if isinstance(text, RecordProblem):
        return text
    try:
        row = json.loads(text)
    except json.JSONDecodeError as error:
        return RecordProblem(line.number, "invalid_json", f"no valid JSON at character {error.colno}: {error.msg}")
    except (ValueError, RecursionError) as error:
        return RecordProblem(line.number, "invalid_json", f"no JSON that can be read: {error}")
    if not isinstance(row, dict):
        return RecordProblem(
            line.number, "not_an_object", f"a JSON {type(row).__name__}, not an object with named fields"
        )
    return record_of(line.number, row, fields)
