"""All items of all runs as one tidy table: a line an item, metric, checkpoint and run, with the texts of the item."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paribus.reporting.formats.tidy import tidy_csv, tidy_parquet
from paribus.reporting.items.item_text import NO_TEXT, Texts
from paribus.reporting.items.listed import left_out
from paribus.reporting.items.scored import Scored
from paribus.reporting.items.written import Written, written_by
from paribus.reporting.significance.items import Matrix
from paribus.reporting.table.comparison import Comparison
from paribus.reporting.table.scores import RunScores

_TEXT, _TEXTS, _COUNT = pa.string(), pa.list_(pa.string()), pa.int64()
_FIELDS: tuple[tuple[str, pa.DataType], ...] = (
    ("run_id", _TEXT), ("seed", _COUNT), ("checkpoint", _COUNT), ("task", _TEXT), ("shots", _COUNT), ("item", _TEXT),
    ("left_out", pa.bool_()), ("metric", _TEXT), ("value", pa.float64()), ("bytes", _COUNT), ("written", _TEXT),
    ("question", _TEXT), ("choices", _TEXTS), ("right", _COUNT), ("ending", _TEXT), ("accepted", _TEXTS),
)  # fmt: skip
_OF_TEXT = ("question", "choices", "right", "ending", "accepted")
BITS = "bits"
"""The metric of documents."""


def items_table(
    comparison: Comparison,
    asked: Sequence[Scored],
    scores: Mapping[str, RunScores],
    texts_of: Callable[[str], Texts],
) -> pa.Table:
    """Every metric of every item of these tasks and sets of documents; what there is not is null.

    Columns: the labels of the factors; run_id, seed, checkpoint (step of the training), task, shots, item, left_out
    (of the table), metric, value (of documents `bits`), bytes (of documents), written (by the model); question,
    choices, right (place in choices), ending, accepted. `scores` by run id.
    """
    own = dict(_FIELDS)  # where seeds are a factor they have a column
    schema = pa.schema([*((factor, _TEXT) for factor in comparison.factors if factor not in own), *_FIELDS])
    parts: list[pa.Table] = []
    for scored in asked:
        texts, out = _Columns(texts_of(scored.name)), left_out(scored, comparison)
        for row in comparison.rows:
            labels = dict(zip(comparison.factors, row.labels, strict=True))
            for run in row.runs:
                if run.run_id in scores:
                    constant = {**labels, "run_id": run.run_id, "seed": run.seed, "task": scored.name}
                    lines = _lines(scored, scores[run.run_id], written_by(run, scored.name), texts, out)
                    parts += [_table(constant | columns, schema) for columns in lines]
    return pa.concat_tables(parts) if parts else schema.empty_table()


def _table(columns: Mapping[str, Any], schema: pa.Schema) -> pa.Table:
    """Columns as the schema has them; a value that is no column stands in every line."""
    count = len(columns["value"])
    whole = {name: value if isinstance(value, pa.Array) else pa.repeat(value, count) for name, value in columns.items()}
    return pa.table({field.name: whole[field.name].cast(field.type) for field in schema}, schema=schema)


class _Columns:
    """The texts of a task as columns."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts
        self._known: dict[tuple[str, ...], dict[str, pa.Array]] = {}

    def of(self, items: tuple[str, ...]) -> dict[str, pa.Array]:
        """(items,) each; null where there is no text."""
        if items not in self._known:
            found = [self._texts.get(item, NO_TEXT) for item in items]
            types = dict(_FIELDS)
            self._known[items] = {
                name: pa.array([_or_null(getattr(text, name)) for text in found], types[name]) for name in _OF_TEXT
            }
        return self._known[items]


def _or_null(value: Any) -> Any:
    return None if value in ("", ()) else value


def _lines(
    scored: Scored, scores: RunScores, written: Written, texts: _Columns, out: frozenset[str]
) -> Iterator[dict[str, Any]]:
    """The columns of each metric and number of shots of one run, (checkpoints * items,)."""
    for shots, metric, items, values, sizes in _matrices(scored, scores):
        checkpoints, count = values.shape
        steps = scores.steps[-checkpoints:]  # fine-tuning goes on from the last one
        places = np.tile(np.arange(count), checkpoints)
        yield {
            "checkpoint": pa.array(np.repeat(steps, count)),
            "shots": pa.nulls(values.size, _COUNT) if shots is None else shots,
            "item": pa.array(items).take(places),
            "left_out": pa.array([item in out for item in items]).take(places),
            "metric": metric,
            "value": pa.array(values.ravel()),
            "bytes": pa.nulls(values.size, _COUNT) if sizes is None else pa.array(sizes.astype(np.int64)).take(places),
            "written": pa.array([written.get((step, item)) for step in steps for item in items], _TEXT),
            **{name: column.take(places) for name, column in texts.of(items).items()},
        }


def _matrices(
    scored: Scored, scores: RunScores
) -> Iterator[tuple[int | None, str, tuple[str, ...], Matrix, Matrix | None]]:
    """Shots, metric, items, values (checkpoints, items) and bytes of documents."""
    if scored.kind == "documents":
        if (found := scored.documents(scores)) is not None:
            yield None, BITS, found.documents, found.bits, found.bytes
        return
    for (task, shots, metric), block in scores.blocks.items():
        if task == scored.name and shots in scored.shots:
            yield shots, metric, block.items, block.values, None


def _csv(table: pa.Table) -> bytes:
    """Lists as JSON."""
    for name, kind in _FIELDS:
        if kind == _TEXTS:
            place = table.column_names.index(name)
            lists = [None if each is None else json.dumps(each, ensure_ascii=False) for each in table[name].to_pylist()]
            table = table.set_column(place, name, pa.array(lists, _TEXT))
    return tidy_csv(table).encode()


def _json_lines(table: pa.Table) -> bytes:
    """What is no finite number is null, as JSON has none."""
    place, value = table.column_names.index("value"), table["value"]
    table = table.set_column(place, "value", pc.if_else(pc.is_finite(value), value, None))
    lines = (json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n" for line in table.to_pylist())
    return "".join(lines).encode()


WRITERS: Mapping[str, Callable[[pa.Table], bytes]] = {".parquet": tidy_parquet, ".csv": _csv, ".jsonl": _json_lines}
"""The contents of a file, by how its name ends."""
