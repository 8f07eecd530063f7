"""The records of one file, read by a worker and kept in a file until their turn in corpus order comes."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from paribus.corpus.readers.record import Item, Record, RecordProblem
from paribus.errors import DataError
from paribus.store import files

_BATCH_BYTES = 4 * 2**20
_SCHEMA = pa.schema(
    [
        ("position", pa.int64()),
        ("id", pa.string()),
        ("text", pa.large_string()),
        ("group", pa.string()),
        ("reason", pa.string()),
        ("message", pa.string()),
        ("read", pa.int64()),
    ]
)
Row = tuple[int, str | None, str | None, str | None, str | None, str | None, int]
Reader = Callable[[Path, BinaryIO], Iterator[Item]]


@dataclass(frozen=True)
class Extract:
    """What was read of a file, in file `kept`, and why no more could be read."""

    kept: Path
    failure: DataError | None


@dataclass(frozen=True)
class Extraction:
    """Reads files into `directory`, each until it has given more than `limit` bytes of text."""

    read: Reader
    directory: Path
    limit: int | None

    def __call__(self, numbered: tuple[int, Path]) -> Extract:
        """The extract of the file with this number."""
        number, path = numbered
        kept = self.directory / f"{number:06d}.arrow"
        with files.replacing(kept) as aside, path.open("rb") as raw:
            return Extract(kept, _write(aside, self._rows(path, raw)))

    def _rows(self, path: Path, raw: BinaryIO) -> Iterator[Row]:
        size = 0
        for item in self.read(path, raw):
            if isinstance(item, Record):
                yield item.position, item.id, item.text, item.group, None, None, raw.tell()
                size += len(item.text.encode())
            else:
                message = item.message.encode("utf-8", "backslashreplace").decode()
                yield item.position, None, None, None, item.reason, message, raw.tell()
            if self.limit is not None and size > self.limit:
                return


def _write(path: Path, rows: Iterator[Row]) -> DataError | None:
    """Write rows, and give the error that ended them."""
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, _SCHEMA, options=options) as writer:
        try:
            for batch in _batches(rows):
                columns = zip(zip(*batch, strict=True), _SCHEMA, strict=True)
                arrays = [pa.array(column, field.type) for column, field in columns]
                writer.write_batch(pa.record_batch(arrays, schema=_SCHEMA))
        except DataError as error:
            return error
    return None


def extracted(extract: Extract) -> Iterator[tuple[Item, int]]:
    """The items and how many bytes of the file were read by then; then DataError, if there was one. Removes `kept`."""
    with pa.OSFile(str(extract.kept), "rb") as file, pa.ipc.open_stream(file) as reader:
        for batch in reader:
            for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                yield _item(row), row[-1]
    extract.kept.unlink()
    if extract.failure is not None:
        raise extract.failure


def _item(row: Row) -> Item:
    position, id, text, group, reason, message, _ = row
    return RecordProblem(position, reason or "", message or "") if text is None else Record(position, id, text, group)


def _batches(rows: Iterator[Row]) -> Iterator[list[Row]]:
    """Rows together; what was read before an error is kept too."""
    batch: list[Row] = []
    size = 0
    try:
        for row in rows:
            batch.append(row)
            size += len(row[2] or "")
            if size >= _BATCH_BYTES:
                yield batch
                batch, size = [], 0
    except DataError:
        if batch:
            yield batch
        raise
    if batch:
        yield batch
