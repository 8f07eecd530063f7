"""How the lines of a table of scores are arranged, worked out once for all runs that were scored on the same lines.

The runs of a comparison differ in the values and in the steps of their checkpoints, seldom in anything else.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from paribus.errors import DataError

Integers = NDArray[np.int64]
Key = tuple[str, int, str]
"""Task, number of shots, metric."""
_REMEMBERED = 8
_CHECKPOINT = "checkpoint"


@dataclass(frozen=True)
class BlockLines:
    """The lines of one task, number of shots and metric among the ordered ones."""

    key: Key
    items: tuple[str, ...]
    hashes: tuple[str, ...]
    lines: slice


@dataclass(frozen=True)
class ItemLines:
    """Of `items.parquet`."""

    order: Integers
    """Lines by task, shots, metric, item and checkpoint."""
    checkpoints: int
    blocks: tuple[BlockLines, ...]
    content: tuple[tuple[str, str], ...]
    """What was scored: (path, number of lines and digest) of each task and number of shots."""


@dataclass(frozen=True)
class DocumentLines:
    """Of `heldout.parquet`, or of one set of `texts.parquet`."""

    order: Integers
    """Lines by document and checkpoint."""
    checkpoints: int
    documents: tuple[str, ...]
    bytes: NDArray[np.float64]
    content: tuple[tuple[str, str], ...]


_Lines = TypeVar("_Lines", ItemLines, DocumentLines)


class Remembered:
    """The last arrangements that were worked out, each with the columns that it is of."""

    def __init__(self) -> None:
        self._last: tuple[tuple[pa.Table, Any], ...] = ()

    def arranged(self, table: pa.Table, value: str, make: Callable[[], _Lines]) -> _Lines:
        """What `make` gives for this table, from memory where all columns but `value` are those of an earlier one.

        Of the checkpoints only their order counts.
        """
        steps = pa.array(_ranked(table[_CHECKPOINT])[1])
        columns = table.drop_columns([value]).set_column(0, _CHECKPOINT, steps)
        for known, found in self._last:
            if known.equals(columns):
                result: _Lines = found
                return result
        made = make()
        self._last = (*self._last, (columns, made))[-_REMEMBERED:]
        return made


def item_lines(table: pa.Table, path: Path) -> ItemLines:
    """The arrangement of a table of items, which has lines.

    Raises:
        DataError: a line without a name, repeated lines, or lines that some checkpoints lack or have otherwise.
    """
    names, codes = zip(*(_coded(table[name], path) for name in ("task", "metric", "item", "doc_hash")), strict=True)
    shots, shot_codes = np.unique(table["shots"].to_numpy(), return_inverse=True)
    columns = (codes[0], shot_codes, codes[1], codes[2])
    order, checkpoints = _sorted(table, columns, ("task", "shots", "metric", "item"), path)
    task, shot, metric, item, document = (column[order] for column in (*columns, codes[3]))
    block = (task * len(shots) + shot) * len(names[1]) + metric
    starts = np.flatnonzero(np.diff(block, prepend=-1))
    by_checkpoint = document.reshape(-1, checkpoints)
    if (by_checkpoint != by_checkpoint[:, :1]).any():
        raise DataError(f"{path} has items whose content differs between checkpoints; score the run again")
    items = [names[2][code] for code in item[::checkpoints].tolist()]
    hashes = [names[3][code] for code in by_checkpoint[:, 0].tolist()]
    found = []
    for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(block)], strict=True):
        key = (names[0][task[start]], int(shots[shot[start]]), names[1][metric[start]])
        lines = slice(start // checkpoints, end // checkpoints)
        found.append(BlockLines(key, tuple(items[lines]), tuple(hashes[lines]), slice(start, end)))
    return ItemLines(order, checkpoints, tuple(found), _content(found))


def document_lines(table: pa.Table, path: Path, name: str = "scores.heldout") -> DocumentLines:
    """The arrangement of a table of documents, which has lines and `name` as content; DataError as for items."""
    names, codes = _coded(table["document"], path)
    order, checkpoints = _sorted(table, (codes,), ("document",), path)
    documents = tuple(names[code] for code in codes[order][::checkpoints].tolist())
    sizes = table["bytes"].to_numpy()[order].astype(np.float64)[::checkpoints]
    digest = _digest([*documents, *map(str, sizes.tolist())])
    content = ((name, f"{len(documents)} documents ({digest})"),)
    return DocumentLines(order, checkpoints, documents, sizes, content)


def _content(blocks: Sequence[BlockLines]) -> tuple[tuple[str, str], ...]:
    found = []
    for task, shots in dict.fromkeys(block.key[:2] for block in blocks):
        parts = [block for block in blocks if block.key[:2] == (task, shots)]
        count = sum(len(block.items) for block in parts)
        digest = _digest([text for block in parts for text in (block.key[2], *block.items, *block.hashes)])
        found.append((f"scores.{task}.{shots}_shot", f"{count} lines ({digest})"))
    return tuple(found)


def _sorted(table: pa.Table, columns: Sequence[Integers], names: Sequence[str], path: Path) -> tuple[Integers, int]:
    """Order of the lines by these columns, then by checkpoint, and the checkpoints that every line has.

    DataError for repeated lines, and for lines that some checkpoints lack.
    """
    steps, codes = _ranked(table[_CHECKPOINT])
    key = np.zeros(table.num_rows, dtype=np.int64)
    for column in columns:
        key = key * (int(column.max()) + 1) + column
    order = np.argsort(key * len(steps) + codes, kind="stable")
    lines, step = key[order], codes[order]
    repeated = np.flatnonzero((np.diff(lines) == 0) & (np.diff(step) == 0))
    if len(repeated):
        line = table.slice(int(order[repeated[0]]), 1).to_pylist()[0]
        first = ", ".join(f"{name} {line[name]}" for name in (_CHECKPOINT, *names))
        raise DataError(f"{path} has {len(repeated)} repeated lines, the first at {first}")
    _, counts = np.unique(lines, return_counts=True)
    if counts.min() != counts.max():
        raise DataError(f"{path} has checkpoints that were not scored on the same lines; score the run again")
    return order, int(counts[0])


def _coded(column: pa.ChunkedArray, path: Path) -> tuple[list[str], Integers]:
    """The distinct texts of a column, sorted, and for each line the place of its text among them."""
    if column.null_count:
        raise DataError(f"{path} has {column.null_count} lines without a value in a column that names them")
    return _ranked(column)


def _ranked(column: pa.ChunkedArray) -> tuple[list[Any], Integers]:
    """The distinct values of a column in order, and for each line the place of its value among them."""
    whole = column.combine_chunks()
    whole = whole if isinstance(whole, pa.DictionaryArray) else whole.dictionary_encode()
    names = whole.dictionary.to_pylist()
    order = sorted(range(len(names)), key=names.__getitem__)
    ranks = np.empty(len(names), dtype=np.int64)
    ranks[order] = np.arange(len(names))
    return [names[index] for index in order], ranks[whole.indices.to_numpy()]


def _digest(texts: Sequence[str]) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:12]
