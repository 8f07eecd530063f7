"""A `scores` artefact in memory: every score of every item at every checkpoint, never an aggregate.

Whatever a report shows is computed from these, so that every number has an error bar and a test.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from paribus.errors import DataError
from paribus.reporting.significance import Matrix, Vector

ITEM_COLUMNS = ("checkpoint", "task", "shots", "item", "doc_hash", "metric", "value")
HELDOUT_COLUMNS = ("checkpoint", "document", "bits", "bytes")

Integers = NDArray[np.int64]
Key = tuple[str, int, str]
"""Task, number of shots, metric."""


@dataclass(frozen=True)
class Block:
    """Scores of one task, number of shots and metric; items are sorted by name."""

    items: tuple[str, ...]
    hashes: tuple[str, ...]
    """Of each item's content."""
    values: Matrix
    """(checkpoints, items), checkpoints in order of their steps."""


@dataclass(frozen=True)
class Heldout:
    """Bits of held-out documents, which are sorted by name."""

    documents: tuple[str, ...] = ()
    bits: Matrix = field(default_factory=lambda: np.empty((0, 0)))
    """(checkpoints, documents)."""
    bytes: Vector = field(default_factory=lambda: np.empty(0))
    """(documents,)."""

    def __len__(self) -> int:
        """Number of documents."""
        return len(self.documents)


@dataclass(frozen=True)
class Scores:
    """Scores of one run at its last checkpoints."""

    blocks: Mapping[Key, Block]
    heldout: Heldout
    statistics: Mapping[str, Any] = field(default_factory=dict)
    """Of the held-out text under the run's tokenizer: bytes_per_token, entropy, redundancy, token_lengths."""
    chance: Mapping[str, float] = field(default_factory=dict)
    """Accuracy of guessing, by task."""
    truncated: Mapping[tuple[str, int], int] = field(default_factory=dict)
    """Items whose prompt was cut to fit the context, by task and shots."""
    checkpoints: int = 0

    @cached_property
    def content(self) -> Mapping[str, str]:
        """What was scored, by a path: checkpoints, items of each task and number of shots, held-out documents."""
        found = {"scores.checkpoints": str(self.checkpoints)}
        for task, shots in dict.fromkeys((task, shots) for task, shots, _ in self.blocks):
            parts = [(key[2], block) for key, block in self.blocks.items() if key[:2] == (task, shots)]
            lines = sum(len(block.items) for _, block in parts)
            texts = [text for metric, block in parts for text in (metric, *block.items, *block.hashes)]
            found[f"scores.{task}.{shots}_shot"] = f"{lines} lines ({_digest(texts)})"
        if len(self.heldout):
            texts = [*self.heldout.documents, *map(str, self.heldout.bytes.tolist())]
            found["scores.heldout"] = f"{len(self.heldout)} documents ({_digest(texts)})"
        return found


def load(directory: Path) -> Scores:
    """Read a `scores` artefact; DataError where a file is missing or torn, lacks columns or repeats an item."""
    items = _table(directory / "items.parquet", ITEM_COLUMNS, ("task", "item", "doc_hash", "metric"))
    heldout = _table(directory / "heldout.parquet", HELDOUT_COLUMNS, ("document",))
    statistics = _json(directory / "statistics.json")
    tasks: Mapping[str, Mapping[str, Any]] = statistics.get("tasks", {})
    steps = np.union1d(*(table["checkpoint"].to_numpy() for table in (items, heldout)))
    return Scores(
        blocks=_blocks(items, directory / "items.parquet"),
        heldout=_heldout(heldout, directory / "heldout.parquet"),
        statistics=statistics.get("heldout", {}),
        chance={task: float(about["chance"]) for task, about in tasks.items() if about.get("chance") is not None},
        truncated={
            (task, int(shots)): int(count)
            for task, about in tasks.items()
            for shots, count in about.get("truncated_prompts", {}).items()
        },
        checkpoints=len(steps),
    )


def _blocks(table: pa.Table, path: Path) -> dict[Key, Block]:
    if not table.num_rows:
        return {}
    names, codes = zip(*(_coded(table[name], path) for name in ("task", "metric", "item", "doc_hash")), strict=True)
    shots, shot_codes = np.unique(table["shots"].to_numpy(), return_inverse=True)
    columns = (codes[0], shot_codes, codes[1], codes[2])
    order, checkpoints = _sorted(table, columns, ("task", "shots", "metric", "item"), path)
    task, shot, metric, item, document = (column[order] for column in (*columns, codes[3]))
    values = table["value"].to_numpy()[order].astype(np.float64)
    block = (task * len(shots) + shot) * len(names[1]) + metric
    starts = np.flatnonzero(np.diff(block, prepend=-1))
    by_checkpoint = document.reshape(-1, checkpoints)
    if (by_checkpoint != by_checkpoint[:, :1]).any():
        raise DataError(f"{path} has items whose content differs between checkpoints; score the run again")
    items = [names[2][code] for code in item[::checkpoints].tolist()]
    hashes = [names[3][code] for code in by_checkpoint[:, 0].tolist()]
    found: dict[Key, Block] = {}
    for start, end in zip(starts, [*starts[1:], len(block)], strict=True):
        key = (names[0][task[start]], int(shots[shot[start]]), names[1][metric[start]])
        lines = slice(start // checkpoints, end // checkpoints)
        scores = np.ascontiguousarray(values[start:end].reshape(-1, checkpoints).T)
        found[key] = Block(tuple(items[lines]), tuple(hashes[lines]), scores)
    return found


def _heldout(table: pa.Table, path: Path) -> Heldout:
    if not table.num_rows:
        return Heldout()
    names, codes = _coded(table["document"], path)
    order, checkpoints = _sorted(table, (codes,), ("document",), path)
    bits, sizes = (
        table[name].to_numpy()[order].astype(np.float64).reshape(-1, checkpoints) for name in ("bits", "bytes")
    )
    return Heldout(
        tuple(names[code] for code in codes[order][::checkpoints].tolist()), np.ascontiguousarray(bits.T), sizes[:, 0]
    )


def _sorted(table: pa.Table, columns: Sequence[Integers], names: Sequence[str], path: Path) -> tuple[Integers, int]:
    """Order of the lines by these columns, then by checkpoint, and the checkpoints that every line has.

    DataError for repeated lines, and for lines that some checkpoints lack.
    """
    steps, codes = np.unique(table["checkpoint"].to_numpy(), return_inverse=True)
    key = np.zeros(table.num_rows, dtype=np.int64)
    for column in columns:
        key = key * (int(column.max()) + 1) + column
    order = np.argsort(key * len(steps) + codes, kind="stable")
    lines, step = key[order], codes[order]
    repeated = np.flatnonzero((np.diff(lines) == 0) & (np.diff(step) == 0))
    if len(repeated):
        line = table.slice(int(order[repeated[0]]), 1).to_pylist()[0]
        first = ", ".join(f"{name} {line[name]}" for name in ("checkpoint", *names))
        raise DataError(f"{path} has {len(repeated)} repeated lines, the first at {first}")
    _, counts = np.unique(lines, return_counts=True)
    if counts.min() != counts.max():
        raise DataError(f"{path} has checkpoints that were not scored on the same lines; score the run again")
    return order, int(counts[0])


def _coded(column: pa.ChunkedArray, path: Path) -> tuple[list[str], Integers]:
    """The distinct texts of a column, sorted, and for each line the place of its text among them."""
    if column.null_count:
        raise DataError(f"{path} has {column.null_count} lines without a value in a column that names them")
    whole = column.combine_chunks()
    whole = whole if isinstance(whole, pa.DictionaryArray) else whole.dictionary_encode()
    names = whole.dictionary.to_pylist()
    order = sorted(range(len(names)), key=names.__getitem__)
    ranks = np.empty(len(names), dtype=np.int64)
    ranks[order] = np.arange(len(names))
    return [names[index] for index in order], ranks[whole.indices.to_numpy()]


def _table(path: Path, columns: Sequence[str], texts: Sequence[str]) -> pa.Table:
    if not path.is_file():
        raise DataError(f"{path} is missing: the scores of this run are incomplete; `paribus doctor` checks the store")
    try:
        file = pq.ParquetFile(path, read_dictionary=list(texts))
        absent = [column for column in columns if column not in file.schema_arrow.names]
        table = file.read(columns=list(columns), use_threads=False)
    except KeyError:
        absent = [column for column in columns if column not in pq.read_schema(path).names]
    except pa.ArrowException as error:
        raise DataError(f"{path} is no readable Parquet file ({error}); score the run again") from error
    if absent:
        raise DataError(f"{path} lacks the columns {', '.join(absent)}; a scores table has {', '.join(columns)}")
    several = any(table[name].num_chunks > 1 for name in texts)
    return table.unify_dictionaries() if several else table


def _json(path: Path) -> Any:
    if not path.is_file():
        raise DataError(f"{path} is missing: the scores of this run are incomplete; `paribus doctor` checks the store")
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(f"{path} is no JSON ({error}); score the run again") from error


def _digest(texts: Sequence[str]) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:12]
