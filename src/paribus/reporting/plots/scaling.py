"""Scores by size of the model and by budget, where the sweep varies those."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from paribus.reporting.plots.picture import COLOURS, DASHES, MARKERS, Plot, picture
from paribus.reporting.table.comparison import Comparison, ComparisonRow
from paribus.reporting.table.layout import heading
from paribus.reporting.table.measures import Column, finite

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
    own = [index for index, factor in enumerate(comparison.factors) if factor.split(".")[0] == axis.group]
    lines: dict[tuple[str, ...], list[ComparisonRow]] = {}
    for row in comparison.finished:
        lines.setdefault(tuple(label for index, label in enumerate(row.labels) if index not in own), []).append(row)
    field = next((field for field in axis.fields if any(_varies(rows, field) for rows in lines.values())), None)
    shown = list(lines.items())[:_MOST_LINES]
    if not own or field is None or not columns:
        return None

    def draw(figure: Figure) -> None:
        panels = figure.subplots(1, len(columns), squeeze=False)[0]
        for panel, column in zip(panels, columns, strict=True):
            for place, (labels, rows) in enumerate(shown):
                points = sorted(
                    [(_x(row, field), row) for row in rows if finite(row.cells[column.key].value)], key=lambda p: p[0]
                )
                x = [x for x, _ in points]
                y = [column.factor * (row.cells[column.key].value or 0.0) for _, row in points]
                error = [column.factor * (row.cells[column.key].half_width or 0.0) for _, row in points]
                name = " · ".join(map(comparison.name, labels)) or "all rows"
                panel.errorbar(
                    x, y, yerr=error, fmt=f"{MARKERS[place % len(MARKERS)]}{DASHES[place % len(DASHES)]}", capsize=2,
                    color=COLOURS[place % len(COLOURS)], label=name if panel is panels[0] else None, linewidth=1.4,
                )  # fmt: skip
            panel.set_xscale("log")
            panel.set_xlabel(_UNITS[field])
            panel.set_ylabel(f"{heading(column)}{' (%)' if column.factor == 100 else ''}")
        figure.legend(loc="outside lower center", fontsize=9, ncols=2)

    caption = f"{' and '.join(heading(column) for column in columns)} by {_UNITS[field]}; ± as in the table."
    told = "; ".join(
        f"{' · '.join(labels) or 'all rows'} {_x(row, field):.3g}: "
        + ", ".join(f"{column.factor * (row.cells[column.key].value or 0.0):.3f}" for column in columns)
        for labels, rows in shown
        for row in rows
    )
    height = 3.6 + 0.2 * (len(shown) // 2)
    return picture(f"by_{axis.name}", caption, f"{caption} {told}.", (4.6 * max(1, len(columns)), height), draw)


def _varies(rows: Sequence[ComparisonRow], field: str) -> bool:
    values = {_x(row, field) for row in rows}
    return len(values) > 1 and min(values) > 0 and max(values) > 1.01 * min(values)


def _x(row: ComparisonRow, field: str) -> float:
    """Mean over the seeds."""
    return sum(float(run.training.get(field) or 0.0) for run in row.runs) / len(row.runs)
