"""Plots of a comparison as SVG. A row has the same look and place in every plot."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from paribus.reporting.notes.summary import Finding
from paribus.reporting.plots.embeddings import embedding_plot
from paribus.reporting.plots.factors import factors_plot
from paribus.reporting.plots.lines.checkpoints import checkpoints_plot
from paribus.reporting.plots.lines.curves import Curve, learning_curves
from paribus.reporting.plots.lines.examples import examples_plot
from paribus.reporting.plots.lines.scaling import scaling_plots
from paribus.reporting.plots.looks import Look, looks_of
from paribus.reporting.plots.marks import mark
from paribus.reporting.plots.picture import Plot, picture, style
from paribus.reporting.plots.tokens import Segmentation, token_frequencies, token_lengths
from paribus.reporting.plots.vocabularies import OverlapMatrix, overlap_plot
from paribus.reporting.significance.items import CONFIDENCE
from paribus.reporting.table.cells import Cell
from paribus.reporting.table.column import AVERAGE, Column
from paribus.reporting.table.comparison import Comparison, ComparisonRow
from paribus.reporting.table.layout import heading
from paribus.reporting.table.measures import finite

MOST_ROWS = 24
"""Rows that a picture has room for."""


def plots(
    comparison: Comparison,
    curves: Mapping[str, Curve],
    overlap: OverlapMatrix | None = None,
    findings: Sequence[Finding] = (),
) -> list[Plot]:
    """All plots for which there is something to show.

    What each factor does, accuracy and bits per byte, effects with their intervals, both by budget, size and
    checkpoint, accuracy by examples in the prompt, learning curves, tokens, vocabularies, embeddings. Of a table with
    more than 24 rows the first 24 are shown.
    """
    rows = comparison.finished[:MOST_ROWS]
    with mpl.rc_context(style()):
        made = [
            factors_plot(comparison, findings),
            *(_scores(comparison, rows, column) for column in main_columns(comparison)),
            _effects(comparison, rows),
            *scaling_plots(comparison, main_columns(comparison)),
            examples_plot(comparison),
            checkpoints_plot(comparison, main_columns(comparison)),
            learning_curves(comparison, rows, curves),
            token_lengths(segmentations(comparison, rows), "the held-out text"),
            token_frequencies(segmentations(comparison, rows), "the held-out text"),
            overlap_plot(overlap) if overlap else None,
            embedding_plot(comparison, rows, overlap.own if overlap else {}),
        ]
    return [plot for plot in made if plot is not None]


def main_columns(comparison: Comparison) -> list[Column]:
    """The columns that sum a table up: the average over tasks or the task there is, and bits per byte."""
    scored = [column for column in comparison.columns if column.scored]
    tasks = [column for column in scored if column.parts and column.key != AVERAGE]
    means = [column for column in scored if column.key == AVERAGE] or [c for c in tasks if c.key.endswith("/mean")]
    whole = [column for column in scored if column.kind == "bits_per_byte"]
    return [*(means[:1] or tasks[:1]), *whole]


def segmentations(comparison: Comparison, rows: Sequence[ComparisonRow]) -> list[Segmentation]:
    """How rows cut the held-out text; rows that cut it alike are one."""
    groups: dict[tuple[tuple[str, int], ...], list[ComparisonRow]] = {}
    found: dict[tuple[tuple[str, int], ...], Mapping[str, Any]] = {}
    for row in rows:
        score = comparison.scores.get(row.runs[0].run_id)
        statistics = score.statistics if score else {}
        lengths = tuple(statistics.get("token_lengths", {}).items())
        if lengths:
            groups.setdefault(lengths, []).append(row)
            found.setdefault(lengths, statistics)
    return [
        Segmentation(
            _common(alike, comparison),
            looks_of(comparison).of(alike[0].labels),
            dict(lengths),
            found[lengths].get("frequency_by_rank", ()),
            comparison.place(alike[0]) if len(alike) == 1 else None,
        )
        for lengths, alike in groups.items()
    ]


def _scores(comparison: Comparison, every: Sequence[ComparisonRow], column: Column) -> Plot | None:
    """First each row's value, then its difference from its baseline with the 95 % interval."""
    rows = [row for row in every if finite(row.cells[column.key].value)]
    if not rows:
        return None
    tested = [row for row in rows if row.cells[column.key].test is not None]

    def draw(figure: Figure) -> None:
        if not tested:
            _values(figure.subplots(), rows, comparison, column)
            return
        left, right = figure.subplots(1, 2, sharey=True, gridspec_kw={"width_ratios": [1.25, 1]})
        _values(left, rows, comparison, column)
        for place, row in enumerate(rows):
            _difference(right, row, place, comparison, column)
        _around_zero(right, comparison)

    text = f"{column.group}, {column.label}" if column.field else "held-out text"
    scored = "accuracy" if column.kind == "accuracy" else "score"
    name = scored if column.parts else column.key.replace("/", "_")
    what = f"{_title(column)}, {heading(column)}" if column.parts else f"Bits per byte of {text}"
    spread = " ± as in the table" if any(row.cells[column.key].half_width is not None for row in rows) else ""
    caption = f"{what}. {'First: mean' if tested else 'Mean'}{spread}."
    caption += f" Second: difference from {_from(comparison)}; {_intervals(comparison)}" if tested else ""
    numbers = "; ".join(
        f"{comparison.row_name(row)} {column.factor * (row.cells[column.key].value or 0):.3f}" for row in rows
    )
    return picture(
        name, caption + _first(comparison), f"{what}: {numbers}.", (9.2 if tested else 6.5, _height(len(rows))), draw
    )


_UNITS = {
    "accuracy": "percentage points",
    "percent": "points",
    "bits_per_byte": "bits per byte, negative is better",
    "perplexity": "bits, negative is better",
}


def _intervals(comparison: Comparison) -> str:
    """What the lines of differences are."""
    cells = [row.cells[column.key] for row in comparison.finished for column in comparison.columns]
    if any(cell.crossed for cell in cells):
        told = (
            "95 % intervals, of what decides over all effects together: thin over seeds and items, thick over the "
            "items of these models alone."
        )
    else:
        told = "95 % intervals over the items of these models alone."
    return told


def _effects(comparison: Comparison, every: Sequence[ComparisonRow]) -> Plot | None:
    """A forest plot: the effect on every measure of every row, measures below each other; None for fewer than two."""
    columns = [c for c in comparison.columns if c.scored and (not c.parts or not c.key.endswith("_shot"))]
    columns = columns if len(columns) > 1 else [c for c in comparison.columns if c.scored]
    rows = [row for row in every if row.baseline is not None][: max(1, 2 * MOST_ROWS // max(1, len(columns)))]
    lines = [(column, row) for column in columns for row in rows if row.cells[column.key].test is not None]
    kinds = list(dict.fromkeys((column.kind, column.factor) for column, _ in lines))
    if len({column.key for column, _ in lines}) < 2:
        return None

    def draw(figure: Figure) -> None:
        counts = [sum((column.kind, column.factor) == kind for column, _ in lines) for kind in kinds]
        panels = figure.subplots(len(kinds), 1, squeeze=False, gridspec_kw={"height_ratios": counts})[:, 0]
        for panel, kind in zip(panels, kinds, strict=True):
            _forest(panel, [line for line in lines if (line[0].kind, line[0].factor) == kind], comparison)

    judged = any(row.cells[column.key].p_adjusted is not None for column, row in lines)
    filled = " Filled: beyond chance, adjusted for all that decides." if judged else ""
    caption = f"Effects: difference from {_from(comparison)}; {_intervals(comparison)}{filled}"
    told = "; ".join(_told(row, column, comparison) for column, row in lines)
    return picture("effects", caption, f"{caption} {told}.", (9.2, 0.6 * len(kinds) + _height(len(lines))), draw)


def _told(row: ComparisonRow, column: Column, comparison: Comparison) -> str:
    cell = row.cells[column.key]
    middle, bounds = column.factor * (cell.difference or 0.0), cell.interval
    told = f" ({column.factor * bounds[0]:+.3f} to {column.factor * bounds[1]:+.3f})" if bounds else ""
    return f"{heading(column)}, {comparison.row_name(row)}: {middle:+.3f}{told}"


def _significant(cell: Cell) -> bool:
    return cell.p_adjusted is not None and cell.p_adjusted < 1 - CONFIDENCE


def _forest(axes: Axes, lines: Sequence[tuple[Column, ComparisonRow]], comparison: Comparison) -> None:
    for place, (column, row) in enumerate(lines):
        _difference(axes, row, place, comparison, column, hollow=not _significant(row.cells[column.key]))
        if place and lines[place - 1][0] != column:
            axes.axhline(place - 0.5, color="#e4e4e4", linewidth=0.8)
    several = len({row.labels for _, row in lines}) > 1
    names = [f"{heading(column)}{f', {comparison.row_name(row)}' if several else ''}" for column, row in lines]
    axes.set_yticks(range(len(lines)), names)
    axes.set_ylim(len(lines) - 0.5, -0.5)
    _around_zero(axes, comparison)
    kind = lines[0][0].kind
    axes.set_xlabel(_UNITS.get(kind, "difference"))


def _title(column: Column) -> str:
    return _shares(column).capitalize() if column.kind == "accuracy" else "Score"


def _shares(column: Column) -> str:
    """What a column in percent measures."""
    return " and ".join(column.families) or "accuracy"


def _from(comparison: Comparison) -> str:
    return "its baseline" if len(comparison.baseline_rows) > 1 else comparison.row_name(comparison.baseline_rows[0])


def _first(comparison: Comparison) -> str:
    count = len(comparison.finished)
    return f" The first {MOST_ROWS} of {count:,} rows." if count > MOST_ROWS else ""


def _height(lines: int) -> float:
    return 1.1 + 0.34 * lines


def _values(axes: Axes, rows: Sequence[ComparisonRow], comparison: Comparison, column: Column) -> None:
    for place, row in enumerate(rows):
        cell = row.cells[column.key]
        look, value = looks_of(comparison).of(row.labels), column.factor * (cell.value or 0.0)
        error = column.factor * cell.half_width if cell.half_width else None
        spread = f" ± {error:.3f}" if error else ""
        told = f"{heading(column)}, {comparison.row_name(row)}: {value:.3f}{spread}"
        mark(_point(axes, value, place, look, error), told, comparison.place(row))
    if column.key in comparison.chance:
        level = column.factor * comparison.chance[column.key]
        axes.axvline(level, color="#666666", linestyle=":", linewidth=1.2)
        axes.text(level, -0.62, "chance", color="#555555", fontsize=8, ha="center", va="bottom")
    axes.set_yticks(range(len(rows)), [comparison.row_name(row) for row in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    better = f" ({column.better} is better)" if column.better == "lower" else ""
    axes.set_xlabel(f"{_shares(column)} in %" if column.kind == "accuracy" else f"{column.label}{better}")
    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.grid(axis="y", visible=False)


def _difference(
    axes: Axes, row: ComparisonRow, place: int, comparison: Comparison, column: Column, *, hollow: bool = False
) -> None:
    """The effect of a row: thin the interval over seeds and items, thick that over the items of these models alone."""
    cell, look = row.cells[column.key], looks_of(comparison).of(row.labels)
    alone = (cell.test.low, cell.test.high) if cell.test else None
    drawn = []
    for interval, width in ((cell.interval, 0.9), (alone, 2.4)):
        if interval is not None and math.isfinite(interval[0]):
            ends = [column.factor * bound for bound in interval]
            drawn += axes.plot(ends, [place, place], color=look.colour, linewidth=width)
    if cell.difference is not None:
        face, middle = "#ffffff" if hollow else look.colour, [column.factor * cell.difference]
        drawn += axes.plot(middle, [place], look.marker, color=look.colour, markersize=6, markerfacecolor=face)
    mark(drawn, f"{_told(row, column, comparison)}, difference from {_from(comparison)}", comparison.place(row))


def _around_zero(axes: Axes, comparison: Comparison) -> None:
    base, *others = comparison.baseline_rows
    axes.axvline(0, color="#444444", linewidth=1, zorder=0)
    axes.set_xlabel("difference from the first row" if base is comparison.rows[0] and not others else "difference")
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", visible=False)


def _point(axes: Axes, value: float, place: int, look: Look, error: float | None) -> list[Line2D]:
    drawn = []
    if error:
        drawn += axes.plot([value - error, value + error], [place, place], color=look.colour, linewidth=1.8)
    return drawn + axes.plot([value], [place], look.marker, color=look.colour, markersize=6)


def _common(rows: Sequence[ComparisonRow], comparison: Comparison) -> str:
    shared = [label for index, label in enumerate(rows[0].labels) if all(row.labels[index] == label for row in rows)]
    return " · ".join(map(comparison.name, shared)) or "all rows"
