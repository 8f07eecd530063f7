"""Scores by size of the model and by budget, where the sweep varies those."""

from collections.abc import Sequence
from dataclasses import dataclass

from paribus.reporting.plots.lines.series import Axis, Line, Panel, series_plot
from paribus.reporting.plots.looks import Looks
from paribus.reporting.plots.picture import Plot
from paribus.reporting.table.column import Column
from paribus.reporting.table.comparison import Comparison, ComparisonRow
from paribus.reporting.table.layout import heading

_MOST_LINES = 12


@dataclass(frozen=True)
class _Axis:
    """What the x axis says, and which number of training it is."""

    name: str
    group: str
    """Configuration group whose factors make it vary."""
    fields: tuple[str, ...]
    label: str


_AXES = (
    _Axis("size", "model", ("parameters",), "parameters"),
    _Axis("budget", "budget", ("tokens", "text_bytes", "flops"), "budget"),
)
_UNITS = {"parameters": "parameters", "tokens": "tokens read", "text_bytes": "bytes of text read", "flops": "FLOPs"}


def scaling_plots(comparison: Comparison, columns: Sequence[Column]) -> list[Plot]:
    """One plot for each of size and budget that varies between rows with otherwise the same labels."""
    return [plot for axis in _AXES if (plot := _plot(comparison, columns, axis)) is not None]


def _plot(comparison: Comparison, columns: Sequence[Column], axis: _Axis) -> Plot | None:
    others = [index for index, factor in enumerate(comparison.factors) if factor.split(".")[0] != axis.group]
    groups: dict[tuple[str, ...], list[ComparisonRow]] = {}
    for row in comparison.finished:
        groups.setdefault(tuple(row.labels[index] for index in others), []).append(row)
    field = next((field for field in axis.fields if any(_varies(rows, field) for rows in groups.values())), None)
    if len(others) == len(comparison.factors) or field is None or not columns:
        return None
    shown = list(groups.items())[:_MOST_LINES]
    # Of all rows of the table, so that a value has the colour that it has in other pictures.
    every = [[row.labels[index] for index in others] for row in comparison.rows]
    looks = Looks([comparison.factors[index] for index in others], every)
    lines = [Line(" · ".join(map(comparison.name, labels)) or "all rows", looks.of(labels)) for labels, _ in shown]
    panels = [
        Panel(
            heading(column),
            column.factor,
            [[(_x(row, field), row.cells[column.key]) for row in rows] for _, rows in shown],
        )
        for column in columns
    ]
    caption = f"{' and '.join(heading(column) for column in columns)} by {_UNITS[field]}"
    return series_plot(f"by_{axis.name}", caption, Axis(_UNITS[field], logarithmic=True), lines, panels)


def _varies(rows: Sequence[ComparisonRow], field: str) -> bool:
    values = {_x(row, field) for row in rows}
    return len(values) > 1 and min(values) > 0 and max(values) > 1.01 * min(values)


def _x(row: ComparisonRow, field: str) -> float:
    """Mean over the seeds."""
    return sum(float(run.training.get(field) or 0.0) for run in row.runs) / len(row.runs)
