"""The numbers of a table by name, for a tracker: those of one run, and those of every cell of a comparison."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paribus.config.groups.experiment import TableConfig
from paribus.reporting.columns import columns_of
from paribus.reporting.measures import METRICS, Column, finite, measure
from paribus.reporting.scores import Scores, load

if TYPE_CHECKING:
    from paribus.reporting.cells import Cell
    from paribus.reporting.comparison import Comparison

SECTION = "table/"
_LONGEST_ROW = 120
_UNSAFE = re.compile(r"[^\w.\-]")


def run_numbers(
    scores: Path, finetuned: Path | None, training: Mapping[str, Any], table: TableConfig
) -> dict[str, float]:
    """What stands in the cells of a row of this run alone: means over items, the last checkpoints, shots, and tasks.

    By `table/<task>/<metric>/mean`, `table/<task>/<metric>/5_shot`, `table/average`, `table/bits_per_byte`, ...: all
    that `table` shows, then every other metric, number of shots, statistic and result of training.

    Raises:
        DataError: the scores are torn.
        ConfigurationError: `table` names what there is not.
    """
    found = load(scores, finetuned)
    columns: dict[str, Column] = {}
    for chosen in (table, *_every(found, table)):
        for column in columns_of([found], [training], chosen):
            columns.setdefault(column_name(column), column)
    means = {SECTION + name: _mean(column, training, found) for name, column in columns.items()}
    return {name: value for name, value in means.items() if value is not None}


def table_numbers(comparison: "Comparison") -> dict[str, float]:
    """Every number of every cell: `table/<row>/<column>` and below it `spread`, `difference`, `low`, `high`, `p_value`
    and `p_holm`, as far as the cell has them; shares where the table shows percent.
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


def _every(scores: Scores, table: TableConfig) -> list[TableConfig]:
    """Tables of everything: as nothing is chosen, and each metric of each task."""
    plain = replace(table, columns=(), groups=None, metrics=None, shots="both")
    metrics: dict[str, set[str]] = {}
    for task, _, metric in scores.blocks:
        derived = [name for name, about in METRICS.items() if about.source == metric]
        metrics.setdefault(task, set()).update([metric, *derived])
    named = tuple(f"{task}:{metric}" for task, found in sorted(metrics.items()) for metric in sorted(found))
    return [plain, replace(plain, columns=named)] if named else [plain]


def _mean(column: Column, training: Mapping[str, Any], scores: Scores) -> float | None:
    """The run's number, averaged in the order in which a cell averages: items, then checkpoints."""
    values = measure(column, training, scores)
    if values is None:
        return None
    mean = float(values.mean(axis=1).mean())
    return 2.0**mean if column.kind == "perplexity" and finite(mean) else mean


def _numbers(cell: "Cell") -> dict[str, float]:
    test = cell.test
    numbers = {
        "": cell.value,
        "/spread": cell.spread,
        "/difference": test.difference if test else None,
        "/low": test.low if test else None,
        "/high": test.high if test else None,
        "/p_value": cell.p_value,
        "/p_holm": cell.p_holm,
    }
    return {name: float(value) for name, value in numbers.items() if value is not None}
