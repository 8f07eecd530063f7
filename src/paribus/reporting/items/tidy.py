"""All items of all runs as one tidy table, a line an item, metric, checkpoint and run; and the texts of the items."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from paribus.reporting.items.item_text import Texts
from paribus.reporting.items.scored import Scored, left_out
from paribus.reporting.items.written import Written, written_by
from paribus.reporting.significance.items import Matrix
from paribus.reporting.table.comparison import Comparison
from paribus.reporting.table.scores import RunScores

MOST_LINES = 5_000_000
"""Of a table of items; beyond, it has those of the last checkpoint alone."""
BITS = "bits"
"""The metric of documents."""
_TEXT, _COUNT = pa.string(), pa.int64()
_FIELDS: tuple[tuple[str, pa.DataType], ...] = (
    ("run_id", _TEXT), ("seed", _COUNT), ("checkpoint", _COUNT), ("task", _TEXT), ("shots", _COUNT), ("item", _TEXT),
    ("left_out", pa.bool_()), ("metric", _TEXT), ("value", pa.float64()), ("bytes", _COUNT), ("written", _TEXT),
)  # fmt: skip
_TEXTS = pa.schema(
    [
        ("task", _TEXT), ("item", _TEXT), ("question", _TEXT), ("choices", pa.list_(_TEXT)), ("right", _COUNT),
        ("ending", _TEXT), ("accepted", pa.list_(_TEXT)),
    ]
)  # fmt: skip


def items_table(
    comparison: Comparison, scored: Sequence[Scored], scores: Mapping[str, RunScores], most: int = MOST_LINES
) -> pa.Table:
    """Every metric of every item of these tasks and sets of documents; what there is not is null.

    Columns: the labels of the factors; run_id, seed, checkpoint (step of the training), task, shots, item, left_out
    (of the table), metric, value (of documents `bits`), bytes (of documents), written (by the model). `scores` by run
    id. Beyond `most` lines only those of the last checkpoint are in it.
    """
    own = dict(_FIELDS)  # where seeds are a factor they have a column
    schema = pa.schema([*((factor, _TEXT) for factor in comparison.factors if factor not in own), *_FIELDS])
    runs = [(row, run, scores[run.run_id]) for row in comparison.rows for run in row.runs if run.run_id in scores]
    count = sum(values.size for each in scored for *_, found in runs for *_, values, _ in _matrices(each, found))
    parts: list[pa.Table] = []
    for each in scored:
        out = left_out(each, comparison)
        for row, run, found in runs:
            labels = dict(zip(comparison.factors, row.labels, strict=True))
            constant = {**labels, "run_id": run.run_id, "seed": run.seed, "task": each.name}
            for columns in _lines(each, found, written_by(run, each.name), out, last=count > most):
                parts.append(_table(constant | columns, schema))
    return pa.concat_tables(parts) if parts else schema.empty_table()


def texts_table(texts: Mapping[str, Texts]) -> pa.Table:
    """The texts of all items by task: task, item, question, choices, right (place in choices), ending, accepted."""
    lines = []
    for task, items in texts.items():
        for item, text in items.items():
            known = {name: value for name, value in vars(text).items() if value not in ("", ())}
            lines.append({"task": task, "item": item, **known})
    return pa.Table.from_pylist(lines, schema=_TEXTS)


def _table(columns: Mapping[str, Any], schema: pa.Schema) -> pa.Table:
    """Columns as the schema has them; a value that is no column stands in every line."""
    count = len(columns["value"])
    whole = {name: value if isinstance(value, pa.Array) else pa.repeat(value, count) for name, value in columns.items()}
    return pa.table({field.name: whole[field.name].cast(field.type) for field in schema}, schema=schema)


def _lines(
    scored: Scored, scores: RunScores, written: Written, out: frozenset[str], *, last: bool
) -> Iterator[dict[str, Any]]:
    """The columns of each metric and number of shots of one run, (checkpoints * items,)."""
    for shots, metric, items, values, sizes in _matrices(scored, scores):
        shown = values[-1:] if last else values
        checkpoints, count = shown.shape
        steps = scores.steps[-checkpoints:]  # fine-tuning goes on from the last one
        places = np.tile(np.arange(count), checkpoints)
        yield {
            "checkpoint": pa.array(np.repeat(steps, count)),
            "shots": pa.nulls(shown.size, _COUNT) if shots is None else shots,
            "item": pa.array(items).take(places),
            "left_out": pa.array([item in out for item in items]).take(places),
            "metric": metric,
            "value": pa.array(shown.ravel()),
            "bytes": pa.nulls(shown.size, _COUNT) if sizes is None else pa.array(sizes.astype(np.int64)).take(places),
            "written": pa.array([written.get((step, item)) for step in steps for item in items], _TEXT),
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
