"""The comparison as tidy data: one row a cell, all digits, as CSV and Parquet."""

import csv
import io
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from paribus.reporting.paper.paper import Beside, Published
from paribus.reporting.table.cells import Cell
from paribus.reporting.table.column import Column
from paribus.reporting.table.comparison import Comparison, ComparisonRow

_TEXT, _NUMBER, _COUNT = pa.string(), pa.float64(), pa.int64()
_FIELDS: tuple[tuple[str, pa.DataType], ...] = (
    ("measure", _TEXT), ("kind", _TEXT), ("tasks", _TEXT), ("shots", _TEXT), ("metric", _TEXT), ("better", _TEXT),
    ("value", _NUMBER), ("best", pa.bool_()), ("seeds", _COUNT), ("checkpoints", _COUNT), ("items", _COUNT),
    ("half_width", _NUMBER), ("spread_seeds", _NUMBER), ("spread_checkpoints", _NUMBER),
    ("standard_error_items", _NUMBER), ("chance", _NUMBER), ("baseline", _TEXT), ("difference", _NUMBER),
    ("low", _NUMBER), ("high", _NUMBER), ("seeds_share", _NUMBER), ("p_value", _NUMBER),
    ("p_adjusted", _NUMBER), ("detectable", _NUMBER), ("test_items", _TEXT), ("low_items", _NUMBER),
    ("high_items", _NUMBER), ("p_items", _NUMBER), ("p_plain_t", _NUMBER), ("paper", _NUMBER),
    ("paper_difference", _NUMBER), ("paper_parameters", _COUNT), ("run_ids", _TEXT), ("run_seeds", _TEXT),
    ("missing", _TEXT),
)  # fmt: skip


def tidy_table(comparison: Comparison, beside: Beside) -> pa.Table:
    """One row a cell: row number, labels of the factors, the measure, its value, spreads, tests, paper and run ids.

    Values, spreads and differences are shares where `kind` is accuracy; the paper's number is in the paper's unit,
    and `paper_parameters` the size of its model. What
    there is not is null. `run_ids`, `run_seeds`, `tasks`, `shots` are separated by spaces.
    """
    columns: dict[str, list[Any]] = {"row": []} | {factor: [] for factor in comparison.factors}
    columns |= {name: [] for name, _ in _FIELDS}
    for place, row in enumerate(comparison.rows):
        labels = {"row": place + 1} | dict(zip(comparison.factors, row.labels, strict=True))
        for column in comparison.columns:
            values = labels | _cell(row, column, comparison, beside.get((place, column.key)))
            for name, value in values.items():
                columns[name].append(value)
    types = [("row", _COUNT), *((factor, _TEXT) for factor in comparison.factors), *_FIELDS]
    return pa.table(columns, schema=pa.schema(types))


class _Lines(io.StringIO):
    """Lines that are written one by one, each with the end of a line that files here have."""

    def write(self, text: str) -> int:
        return super().write(text.removesuffix("\r\n") + "\n")


def tidy_csv(table: pa.Table) -> str:
    """The table as CSV: a header, then every row; empty where there is nothing."""
    buffer = _Lines()
    # Only what is in the terminator is quoted, and a carriage return alone ends a line for whoever reads it.
    writer = csv.writer(buffer, lineterminator="\r\n")
    writer.writerow(table.column_names)
    lines = zip(*(table[name].to_pylist() for name in table.column_names), strict=True)
    writer.writerows([["" if value is None else value for value in line] for line in lines])
    return buffer.getvalue()


def tidy_parquet(table: pa.Table) -> bytes:
    """The table as a Parquet file."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _cell(row: ComparisonRow, column: Column, comparison: Comparison, paper: Published | None) -> dict[str, Any]:
    cell = row.cells[column.key]
    base = comparison.rows[row.baseline] if row.baseline is not None and cell.test else None
    gap = None if paper is None or cell.value is None else cell.value * column.factor - paper.number
    return {
        "measure": column.key,
        "kind": column.kind,
        "tasks": _joined([part.task for part in column.parts]),
        "shots": _joined(dict.fromkeys(str(shots) for part in column.parts for shots in part.shots)),
        "metric": _joined(dict.fromkeys(part.metric for part in column.parts)),
        "better": column.better,
        **_numbers(cell),
        "chance": comparison.chance.get(column.key),
        "baseline": ", ".join(base.labels) if base else None,
        **_tests(cell),
        "paper": None if paper is None else paper.number,
        "paper_difference": gap,
        "paper_parameters": None if paper is None else paper.parameters,
        "run_ids": _joined([run.run_id for run in row.runs]),
        "run_seeds": _joined([str(run.seed) for run in row.runs]),
        "missing": "; ".join(row.missing) or None,
    }


def _numbers(cell: Cell) -> dict[str, Any]:
    return {
        "value": cell.value,
        "best": cell.best,
        "seeds": cell.seeds,
        "checkpoints": cell.checkpoints,
        "items": cell.items,
        "half_width": cell.half_width,
        "spread_seeds": cell.seed_spread,
        "spread_checkpoints": cell.checkpoint_spread,
        "standard_error_items": cell.error,
    }


def _tests(cell: Cell) -> dict[str, Any]:
    test = cell.test
    low, high = cell.interval or (None, None)
    return {
        "difference": cell.difference,
        "low": low,
        "high": high,
        "seeds_share": cell.crossed.quantile.share if cell.crossed else None,
        "p_value": cell.p_value,
        "p_adjusted": cell.p_adjusted,
        "detectable": cell.detectable,
        "test_items": test.test if test else None,
        "low_items": test.low if test else None,
        "high_items": test.high if test else None,
        "p_items": test.p_value if test else None,
        "p_plain_t": cell.plain_p,
    }


def _joined(texts: Sequence[str] | dict[str, None]) -> str | None:
    return " ".join(texts) or None
