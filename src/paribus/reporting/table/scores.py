"""An `evaluation` artefact in memory: every score of every item at every checkpoint, never an aggregate.

Whatever a report shows is computed from these, so that every number has an error bar and a test.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from paribus.errors import DataError
from paribus.reporting.significance.items import Matrix, Vector
from paribus.reporting.table.score_lines import DocumentLines, ItemLines, Key, Remembered, document_lines, item_lines

ITEMS = "items.parquet"
ITEM_COLUMNS = ("checkpoint", "task", "shots", "item", "doc_hash", "metric", "value")
HELDOUT_COLUMNS = ("checkpoint", "document", "bits", "bytes")
TEXTS_COLUMNS = (*HELDOUT_COLUMNS, "text_set", "tokens")


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
    tokens: Vector = field(default_factory=lambda: np.empty(0))
    """(documents,) of sets of texts; none of held-out text."""

    def __len__(self) -> int:
        """Number of documents."""
        return len(self.documents)


@dataclass(frozen=True)
class RunScores:
    """Scores of one run at its last checkpoints."""

    blocks: Mapping[Key, Block]
    heldout: Heldout
    statistics: Mapping[str, Any] = field(default_factory=dict)
    """Of the held-out text under the run's tokenizer: bytes_per_token, entropy, redundancy, token_lengths."""
    chance: Mapping[str, float] = field(default_factory=dict)
    """Accuracy of guessing, by task."""
    truncated: Mapping[tuple[str, int], tuple[str, ...]] = field(default_factory=dict)
    """Items whose prompt was cut to fit the context, by task and shots."""
    crossed_items: Mapping[tuple[str, int], int] = field(default_factory=dict)
    """Items with a token that crosses from the context into a choice, by task and shots."""
    crossed_choices: Mapping[tuple[str, int], int] = field(default_factory=dict)
    """Choices with such a token."""
    cut_sources: int = 0
    """Held-out pairs whose source lost its end, since it is longer than the context."""
    changed_documents: int | None = None
    """Scored texts that the tokenizer does not give back; None where that is not known."""
    documents_cut: Mapping[str, int] = field(default_factory=dict)
    """By fine-tuned task how many documents lost their end."""
    document_bytes: Mapping[str, float] = field(default_factory=dict)
    """By fine-tuned task the mean bytes of text that the model read of a document."""
    omitted: float = 0.0
    """Largest share of a probability that a sum over such tokens left out."""
    uniformity: Mapping[str, float | None] = field(default_factory=dict)
    """Of the input embeddings at the last checkpoint: of the tokens that are used, frequent, medium, rare, unused."""
    checkpoints: int = 0
    steps: tuple[int, ...] = ()
    """Of training, at which the checkpoints stand."""
    texts: Mapping[str, Heldout] = field(default_factory=dict)
    """Bits of the documents of each set of texts, by its name."""

    content: Mapping[str, str] = field(default_factory=dict)
    """What was scored, by a path: checkpoints, items of each task and number of shots, held-out documents."""


def load(directory: Path, finetuned: Path | None = None, remembered: Remembered | None = None) -> RunScores:
    """Read an `evaluation` artefact, and the items of a `finetuning` one with it.

    With `remembered`, lines that an earlier artefact had are not arranged again.

    Raises:
        DataError: a file is missing or torn, lacks columns or repeats an item.
    """
    known = remembered or Remembered()
    items = _items(directory)
    heldout = _table(directory / "heldout.parquet", HELDOUT_COLUMNS, ("document",))
    statistics = _json(directory / "statistics.json")
    tasks: Mapping[str, Mapping[str, Any]] = statistics.get("tasks", {})
    fine: Mapping[str, Mapping[str, Any]] = _json(finetuned / "statistics.json")["tasks"] if finetuned else {}
    steps = sorted({step for table in (items, heldout) for step in table["checkpoint"].unique().to_pylist()})
    checkpoints = len(steps)
    blocks, scored = _blocks_of(items, directory / ITEMS, known)
    tuned, answered = _blocks_of(_items(finetuned), finetuned / ITEMS, known) if finetuned else ({}, {})
    documents, content = Heldout(), {"scores.checkpoints": str(checkpoints)} | scored | answered
    if heldout.num_rows:
        read = known.arranged(heldout, "bits", lambda: document_lines(heldout, directory / "heldout.parquet"))
        documents, content = _heldout(heldout, read), content | dict(read.content)
    texts, about_texts = _texts(directory / "texts.parquet", known) if statistics.get("texts") else ({}, {})
    return RunScores(
        blocks=blocks | tuned,
        heldout=documents,
        statistics=statistics.get("heldout", {}),
        chance={task: float(about["chance"]) for task, about in tasks.items() if about.get("chance") is not None},
        truncated={
            (task, int(shots)): tuple(items)
            for task, about in tasks.items()
            for shots, items in about.get("truncated_items", {}).items()
        },
        crossed_items=_counts(tasks, "crossed_items"),
        crossed_choices=_counts(tasks, "crossed_choices"),
        uniformity=((statistics.get("embeddings") or {}).get("uniformity") or {}).get("input", {}),
        cut_sources=int(statistics.get("cut_sources") or 0),
        changed_documents=statistics.get("changed_documents"),
        documents_cut={task: int(about["documents_cut"]) for task, about in fine.items()},
        document_bytes={task: float(about["document_bytes"]) for task, about in fine.items()},
        omitted=float(statistics.get("omitted_at_boundaries") or 0.0),
        checkpoints=checkpoints,
        steps=tuple(steps),
        content=content | about_texts,
        texts=texts,
    )


def _items(directory: Path) -> pa.Table:
    return _table(directory / ITEMS, ITEM_COLUMNS, ("task", "item", "doc_hash", "metric"))


def _blocks_of(table: pa.Table, path: Path, known: Remembered) -> tuple[dict[Key, Block], dict[str, str]]:
    """The blocks of a table of items, and their content; nothing for an empty one."""
    if not table.num_rows:
        return {}, {}
    lines = known.arranged(table, "value", lambda: item_lines(table, path))
    return _blocks(table, lines), dict(lines.content)


def _counts(tasks: Mapping[str, Mapping[str, Any]], name: str) -> dict[tuple[str, int], int]:
    """A number that `statistics.json` has by task and shots."""
    return {
        (task, int(shots)): int(count) for task, about in tasks.items() for shots, count in about.get(name, {}).items()
    }


def _blocks(table: pa.Table, lines: ItemLines) -> dict[Key, Block]:
    values = table["value"].to_numpy()[lines.order].astype(np.float64)
    return {
        block.key: Block(
            block.items,
            block.hashes,
            np.ascontiguousarray(values[block.lines].reshape(-1, lines.checkpoints).T),
        )
        for block in lines.blocks
    }


def _heldout(table: pa.Table, lines: DocumentLines) -> Heldout:
    bits = table["bits"].to_numpy()[lines.order].astype(np.float64).reshape(-1, lines.checkpoints)
    return Heldout(lines.documents, np.ascontiguousarray(bits.T), lines.bytes)


def _texts(path: Path, known: Remembered) -> tuple[dict[str, Heldout], dict[str, str]]:
    """The sets of texts by name, and their content."""
    table = _table(path, TEXTS_COLUMNS, ("text_set", "document")).select(TEXTS_COLUMNS)
    found: dict[str, Heldout] = {}
    content: dict[str, str] = {}
    for name in table["text_set"].unique().to_pylist():
        found[name], about = _text_set(table.filter(pc.field("text_set") == name), name, path, known)
        content |= about
    return found, content


def _text_set(table: pa.Table, name: str, path: Path, known: Remembered) -> tuple[Heldout, dict[str, str]]:
    """Tokens are no part of what was scored: another tokenizer has others of the same documents."""
    scored = table.drop_columns(["tokens"])
    lines = known.arranged(scored, "bits", lambda: document_lines(scored, path, f"scores.texts.{name}"))
    tokens = table["tokens"].to_numpy()[lines.order].astype(np.float64).reshape(-1, lines.checkpoints)[:, 0]
    return replace(_heldout(scored, lines), tokens=tokens), dict(lines.content)


def _table(path: Path, columns: Sequence[str], texts: Sequence[str]) -> pa.Table:
    if not path.is_file():
        raise DataError(
            f"{path} is missing: the scores of this run are incomplete; `paribus clean --verify` checks the store"
        )
    try:
        file = pq.ParquetFile(path, memory_map=True, read_dictionary=list(texts))
        present = set(file.schema_arrow.names)
        absent = [column for column in columns if column not in present]
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
        raise DataError(
            f"{path} is missing: the scores of this run are incomplete; `paribus clean --verify` checks the store"
        )
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(f"{path} is no JSON ({error}); score the run again") from error
