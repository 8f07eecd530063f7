"""Parquet files: one row a record, read a batch at a time with page checksums verified."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from paribus.corpus.readers.record import Fields, Item, RecordProblem, record_of
from paribus.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

BATCH_ROWS = 1024


def read_parquet(path: Path, stream: BinaryIO, fields: Fields) -> Iterator[Item]:
    """Records of the Parquet file in `stream`, opened from `path`; positions are row numbers from 1.

    DataError where the file is truncated or damaged, or lacks the column.
    """
    with tempfile.TemporaryFile() as copy:
        if not stream.seekable():  # a compressed file: Parquet is read from its end
            shutil.copyfileobj(stream, copy)
            stream = copy
        yield from _rows(path, _opened(path, stream, fields), fields)


def _opened(path: Path, stream: BinaryIO, fields: Fields) -> "pq.ParquetFile":
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
            yield _item(position, batch, row, fields)


def _item(position: int, batch: "pa.RecordBatch", row: int, fields: Fields) -> Item:
    try:
        values = {name: batch.column(name)[row].as_py() for name in batch.schema.names}
    except UnicodeDecodeError as error:
        return RecordProblem(
            position, "invalid_utf8", f"invalid UTF-8 at byte {error.start} of the value ({error.reason})"
        )
    return record_of(position, values, fields)
