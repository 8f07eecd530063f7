"""Readers of text, JSON lines and Parquet, compressed or not: records and problems in the order of the file."""

import codecs
import io
import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

from paribus.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq
Unit = Literal["file", "line", "paragraph"]
BATCH_ROWS = 1024
BUFFER_BYTES = 2**20


@dataclass(frozen=True, slots=True)
class Fields:
    """Names of the fields of the text, of the id (None: records are numbered) and of the group, if any."""

    text: str
    id: str | None
    setting: str = "corpus.text_field"
    """Field of the configuration that names the text field."""
    group: str | None = None

    def named(self) -> list[tuple[str, str]]:
        """(name of a field, field of the configuration that names it)."""
        named = ((self.text, self.setting), (self.id, "corpus.id_field"), (self.group, "corpus.group_field"))
        return [(name, setting) for name, setting in named if name is not None]


@dataclass(frozen=True, slots=True)
class Record:
    """One record; `position` counts lines or rows from 1, `id` is None where records are numbered.

    `group` names the whole that the record is a piece of; None for a record by itself.
    """

    position: int
    id: str | None
    text: str
    group: str | None = None


@dataclass(frozen=True, slots=True)
class RecordProblem:
    """Why there is no record at `position`; `reason` is a short name to count by, `message` is for people."""

    position: int
    reason: str
    message: str


Item = Record | RecordProblem


def record_of(position: int, row: Mapping[str, Any], fields: Fields) -> Item:
    """The record in a row of named values, or the problem with it."""
    text = row.get(fields.text)
    if not isinstance(text, str):
        return _no_value(position, row, fields.text, fields.setting, "text")
    for name, setting, what in ((fields.id, "corpus.id_field", "id"), (fields.group, "corpus.group_field", "group")):
        if name is not None and not _is_a_name(row.get(name)):
            return _no_value(position, row, name, setting, what)
    id, group = (None if name is None else str(row[name]) for name in (fields.id, fields.group))
    return checked(Record(position, id, text, group))


def checked(record: Record) -> Item:
    """The record itself, or a problem where its text is empty or is not Unicode text."""
    if not record.text:
        return RecordProblem(record.position, "empty_text", "the text is empty")
    try:
        record.text.encode()
        (record.id or "").encode()
        (record.group or "").encode()
    except UnicodeEncodeError as error:
        message = (
            f"the text, id or group has half a surrogate pair at character {error.start}, which UTF-8 cannot express"
        )
        return RecordProblem(record.position, "lone_surrogate", message)
    return record


def _is_a_name(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool) and value != ""


def _no_value(position: int, row: Mapping[str, Any], name: str, setting: str, what: str) -> RecordProblem:
    if name not in row:
        return RecordProblem(position, f"no_{what}_field", f"no field {name!r} ({setting}); it has {_names(row)}")
    holds = f"field {name!r} ({setting}) holds {_kind(row[name])}"
    if what == "text":
        return RecordProblem(position, "text_not_a_string", f"{holds}, not a string")
    return RecordProblem(position, f"invalid_{what}", f"{holds}, not a non-empty string or an integer")


def _names(row: Mapping[str, Any]) -> str:
    names = [repr(name) for name in row]
    return ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "") if names else "no field"


def _kind(value: Any) -> str:
    kinds = {type(None): "null", bool: "a boolean", int: "an integer", float: "a number", list: "a list"}
    return "an empty string" if value == "" else kinds.get(type(value), f"a {type(value).__name__}")


# Plain text, where a document is a file, a line, or a paragraph between blank lines.
#
# Text is not changed; only a byte order mark at the start of the file and the line break after a line or paragraph are
# left out.
def read_txt(stream: BinaryIO, document: Unit) -> Iterator[Item]:
    """Records of a stream of text; positions are the numbers of their first lines."""
    if document == "file":
        yield _text_item(list(lines(stream)), keep_end=True)
        return
    if document == "line":
        yield from (_text_item([line], keep_end=False) for line in lines(stream) if _has_text(line))
        return
    for has_text, paragraph in groupby(lines(stream), _has_text):
        if has_text:
            yield _text_item(list(paragraph), keep_end=False)


def read_lines(stream: BinaryIO) -> Iterator[Item]:
    """A record for each line, and a problem for each blank one, so that two files stay aligned."""
    for line in lines(stream):
        yield _text_item([line] if _has_text(line) else [], keep_end=False, number=line.number)


@dataclass(frozen=True, slots=True)
class TextLine:
    """A line with its terminator, its number from 1 and the offset of its first byte in the decompressed file."""

    number: int
    offset: int
    data: bytes


def _has_text(line: TextLine) -> bool:
    return bool(line.data) and not line.data.isspace()


def _text_item(part: list[TextLine], *, keep_end: bool, number: int = 1) -> Item:
    if not part:
        return RecordProblem(number, "empty_text", "the text is empty")
    data = b"".join(line.data for line in part)
    if not keep_end:
        data = data.removesuffix(b"\n").removesuffix(b"\r")
    text = decode(data, line=part[0].number, offset=part[0].offset)
    return text if isinstance(text, RecordProblem) else checked(Record(part[0].number, None, text))


def read_jsonl(stream: BinaryIO, fields: Fields) -> Iterator[Item]:
    """Records of a stream of JSON lines; positions are line numbers."""
    for line in lines(stream):
        if not line.data.isspace() and line.data:
            yield _json_item(line, fields)


def _json_item(line: TextLine, fields: Fields) -> Item:
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


def read_parquet(path: Path, stream: BinaryIO, fields: Fields) -> Iterator[Item]:
    """Records of the Parquet file in `stream`, opened from `path`; positions are row numbers from 1.

    DataError where the file is truncated or damaged, or lacks the column.
    """
    with tempfile.TemporaryFile() as copy:
        must_copy = not stream.seekable()  # Parquet is read from its end
        if must_copy:
            shutil.copyfileobj(stream, copy)
        yield from _rows(path, _open_parquet(path, copy if must_copy else stream, fields), fields)


def _open_parquet(path: Path, stream: BinaryIO, fields: Fields) -> "pq.ParquetFile":
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(stream, page_checksum_verification=True)
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(f"{path}: a truncated or damaged Parquet file ({error})") from error
    schema = file.schema_arrow
    for name, key in fields.named():
        if name not in schema.names:
            raise DataError(f"{path}: no column {name!r} ({key}); it has {', '.join(map(repr, schema.names))}")
        if schema.names.count(name) > 1:
            raise DataError(f"{path}: several columns are named {name!r} ({key}); rename all but one")
    kind = schema.field(fields.text).type
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_dictionary)
    if not any(is_text(kind) for is_text in texts):
        raise DataError(f"{path}: column {fields.text!r} ({fields.setting}) holds {kind}, not strings")
    return file


def _rows(path: Path, file: "pq.ParquetFile", fields: Fields) -> Iterator[Item]:
    import pyarrow as pa

    names = list(dict.fromkeys(name for name, _ in fields.named()))
    position = 0
    batches = file.iter_batches(BATCH_ROWS, columns=names)
    while True:
        try:
            batch = next(batches, None)
        except (pa.ArrowInvalid, OSError) as error:
            raise DataError(f"{path}: damaged after row {position} ({error})") from error
        if batch is None:
            return
        for row in range(batch.num_rows):
            position += 1
            yield _row_item(position, batch, row, fields)


def _row_item(position: int, batch: "pa.RecordBatch", row: int, fields: Fields) -> Item:
    try:
        values = {name: batch.column(name)[row].as_py() for name in batch.schema.names}
    except UnicodeDecodeError as error:
        return RecordProblem(
            position, "invalid_utf8", f"invalid UTF-8 at byte {error.start} of the value ({error.reason})"
        )
    return record_of(position, values, fields)


def lines(stream: BinaryIO) -> Iterator[TextLine]:
    """Lines that end with a line feed; a byte order mark at the start of the file is no part of the first."""
    offset = 0
    for number, data in enumerate(stream, 1):
        mark = len(codecs.BOM_UTF8) if number == 1 and data.startswith(codecs.BOM_UTF8) else 0
        yield TextLine(number, offset + mark, data[mark:])
        offset += len(data)


def decode(data: bytes, *, line: int, offset: int) -> str | RecordProblem:
    """The text of UTF-8 `data` that begins at `line` and byte `offset`, or a problem with the first wrong byte."""
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


class ArchiveError(DataError):
    """A compressed file ends too early or is damaged."""


class _Decompressed(io.RawIOBase):
    """The decompressed bytes of all frames of an archive; ArchiveError where it is truncated or damaged."""

    def __init__(self, path: Path, raw: BinaryIO, compression: str) -> None:
        import pyarrow as pa

        self._damage = f"{path}: truncated or damaged .{compression} archive"
        self._stream = pa.CompressedInputStream(raw, {"gz": "gzip", "zst": "zstd", "bz2": "bz2"}[compression])

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        import pyarrow as pa

        try:
            return int(self._stream.readinto(buffer))
        except (OSError, pa.ArrowException) as error:
            raise ArchiveError(f"{self._damage} ({error})") from error


def open_decompressed(path: Path, raw: BinaryIO, compression: str | None) -> BinaryIO:
    """Buffered stream of the decompressed bytes of `raw`, opened from `path`; `raw` itself without compression."""
    return raw if compression is None else io.BufferedReader(_Decompressed(path, raw, compression), BUFFER_BYTES)
