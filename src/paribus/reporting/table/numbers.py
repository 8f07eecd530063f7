"""The numbers of a table by name, for a tracker: those of one run, and those of every cell of a comparison."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paribus.config.groups.experiment import default_table
from paribus.reporting.table.column import METRICS, Column
from paribus.reporting.table.columns import columns_of
from paribus.reporting.table.measures import measure, perplexity
from paribus.reporting.table.scores import RunScores, load

if TYPE_CHECKING:
    from paribus.reporting.table.cells import Cell
    from paribus.reporting.table.comparison import Comparison

SECTION = "table/"
_LONGEST_ROW = 120
_UNSAFE = re.compile(r"[^\w.\-]")


def run_numbers(scores: Path, finetuned: Path | None, training: Mapping[str, Any]) -> dict[str, float]:
    """What this run alone puts into cells: means over items, the last checkpoints and shots, whatever the table.

    By `table/<task>/<metric>/mean` and, of several numbers of shots, `table/<task>/<metric>/5_shot`;
    `table/bits_per_byte`, `table/<set>/bits_per_byte`, and each statistic and result of training. Means over tasks
    depend on the table, so they are numbers of the sweep alone.

    Raises:
        DataError: the scores are torn.
    """
    found = load(scores, finetuned)
    columns = {column_name(column): column for column in _columns(found, training) if len(column.parts) <= 1}
    means = {SECTION + name: _mean(column, training, found) for name, column in columns.items()}
    return {name: value for name, value in means.items() if value is not None}


def table_numbers(comparison: "Comparison") -> dict[str, float]:
    """Every number of every cell: `table/<row>/<column>` and below it `half_width`, `difference`, `low`, `high`,
    `p_value` and `p_adjusted`, as far as the cell has them; shares where the table shows percent.
    """
    found: dict[str, float] = {}
    for row in comparison.rows:
        for column in comparison.columns:
            name = f"{SECTION}{row_name(row.labels)}/{column_name(column)}"
            found |= {name + part: value for part, value in _numbers(row.cells[column.key]).items()}
    return found


def row_name(labels: Sequence[str]) -> str:
    """The labels of a row in characters that trackers take; a digest of them where that loses any."""
    whole = " ".join(labels) or "all runs"
    safe = " ".join(_UNSAFE.sub("_", label) for label in labels)[:_LONGEST_ROW] or whole
    return safe if safe == whole else f"{safe}-{hashlib.sha256(repr(tuple(labels)).encode()).hexdigest()[:8]}"


def column_name(column: Column) -> str:
    """The key of a column; of a task's, its metric too, which a table may choose."""
    if len(column.parts) != 1 or "/" not in column.key:
        return column.key
    (part,) = column.parts
    return f"{part.task}/{part.metric}/{column.key.rpartition('/')[2]}"


def _columns(scores: RunScores, training: Mapping[str, Any]) -> list[Column]:
    """Every column a table could have of a run, by each metric of each task."""
    metrics: dict[str, set[str]] = {}
    for task, _, metric in scores.blocks:
        derived = [name for name, about in METRICS.items() if about.source == metric]
        metrics.setdefault(task, set()).update([metric, *derived])
    named = tuple(f"{task}:{metric}" for task, found in sorted(metrics.items()) for metric in sorted(found))
    everything = default_table()
    tables = [everything, replace(everything, columns=named)] if named else [everything]
    return [column for table in tables for column in columns_of([scores], [training], table)]


def _mean(column: Column, training: Mapping[str, Any], scores: RunScores) -> float | None:
    """The run's number, averaged in the order in which a cell averages: items, then checkpoints."""
    values = measure(column, training, scores)
    if values is None:
        return None
    mean = float(values.mean(axis=1).mean())
    return perplexity(mean) if column.kind == "perplexity" else mean


def _numbers(cell: "Cell") -> dict[str, float]:
    low, high = cell.interval or (None, None)
    numbers = {
        "": cell.value,
        "/half_width": cell.half_width,
        "/difference": cell.difference,
        "/low": low,
        "/high": high,
        "/p_value": cell.p_value,
        "/p_adjusted": cell.p_adjusted,
    }
    return {name: float(value) for name, value in numbers.items() if value is not None}
