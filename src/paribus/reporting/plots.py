"""Plots of a comparison, as PNG files and as SVG for the page. A row has the same colour and place in every plot."""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from paribus.reporting.comparison import Comparison, Row
from paribus.reporting.layout import heading
from paribus.reporting.measures import Column
from paribus.reporting.picture import COLOURS, DASHES, MARKERS, Plot, picture, style
from paribus.reporting.token_plots import Segmentation, token_frequencies, token_lengths
from paribus.reporting.vocabulary_overlap import OverlapMatrix, overlap_plot

Curve = Sequence[tuple[int, float]]


def plots(comparison: Comparison, curves: Mapping[str, Curve], overlap: OverlapMatrix | None = None) -> list[Plot]:
    """All plots for which there is something to show: accuracy, bits per byte, loss curves, tokens, vocabularies.

    `curves` has, by run id, (step, training loss in nats a token) in order.
    """
    with mpl.rc_context(style()):
        made = [
            *(_scores(comparison, column) for column in comparison.columns if _plotted(column, comparison)),
            _losses(comparison, curves),
            token_lengths(segmentations(comparison), "the held-out text"),
            token_frequencies(segmentations(comparison), "the held-out text"),
            overlap_plot(overlap) if overlap else None,
        ]
    return [plot for plot in made if plot is not None]


def row_name(row: Row) -> str:
    """A row in a legend or on an axis."""
    return " · ".join(row.labels) or "all runs"


def segmentations(comparison: Comparison) -> list[Segmentation]:
    """How the rows cut the held-out text; rows that cut it alike are one."""
    groups: dict[tuple[tuple[str, int], ...], list[Row]] = {}
    found: dict[tuple[tuple[str, int], ...], Mapping[str, Any]] = {}
    for row in comparison.finished:
        score = comparison.scores.get(row.runs[0].run_id)
        statistics = score.statistics if score else {}
        lengths = tuple(statistics.get("token_lengths", {}).items())
        if lengths:
            groups.setdefault(lengths, []).append(row)
            found.setdefault(lengths, statistics)
    return [
        Segmentation(
            _common(rows), _index(rows[0], comparison), dict(lengths), found[lengths].get("frequency_by_rank", ())
        )
        for lengths, rows in groups.items()
    ]


def _plotted(column: Column, comparison: Comparison) -> bool:
    several = any(other.key == "average" for other in comparison.columns)
    if column.kind == "bits_per_byte":
        return True
    return column.key == "average" if several else column.key.endswith("/mean")


def _scores(comparison: Comparison, column: Column) -> Plot | None:
    """Left: each row's value. Right: its difference from the first row with the 95 % interval."""
    rows = [row for row in comparison.finished if _finite(row.cells[column.key].value)]
    if not rows:
        return None
    percent = _factor(column)
    tested = [row for row in rows if row.cells[column.key].test is not None]

    def draw(figure: Figure) -> None:
        if not tested:
            _values(figure.subplots(), rows, comparison, column)
            return
        left, right = figure.subplots(1, 2, sharey=True, gridspec_kw={"width_ratios": [1.25, 1]})
        _values(left, rows, comparison, column)
        _differences(right, rows, comparison, column)

    name = "bits_per_byte" if column.kind == "bits_per_byte" else "accuracy"
    what = "Bits per byte of held-out text" if column.kind == "bits_per_byte" else f"Accuracy, {heading(column)}"
    caption = f"{what}. Left: mean ± as in the table."
    caption += (
        " Right: difference from the first row with its 95 % interval over items, not adjusted." if tested else ""
    )
    numbers = "; ".join(f"{row_name(row)} {percent * (row.cells[column.key].value or 0):.3f}" for row in rows)
    return picture(name, caption, f"{what}: {numbers}.", (9.2 if tested else 6.5, 1.1 + 0.34 * len(rows)), draw)


def _factor(column: Column) -> float:
    return 100.0 if column.kind == "accuracy" else 1.0


def _values(axes: Axes, rows: Sequence[Row], comparison: Comparison, column: Column) -> None:
    percent = _factor(column)
    for place, row in enumerate(rows):
        cell = row.cells[column.key]
        error = None if cell.spread is None else percent * cell.spread
        _point(
            axes, percent * (cell.value or 0.0), place, _index(row, comparison), [[error], [error]] if error else None
        )
    if column.key in comparison.chance:
        level = percent * comparison.chance[column.key]
        axes.axvline(level, color="#666666", linestyle=":", linewidth=1.2)
        axes.text(level, -0.62, "chance", color="#555555", fontsize=8, ha="center", va="bottom")
    axes.set_yticks(range(len(rows)), [row_name(row) for row in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlabel("accuracy in %" if column.kind == "accuracy" else "bits per byte (lower is better)")
    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.grid(axis="y", visible=False)


def _differences(axes: Axes, rows: Sequence[Row], comparison: Comparison, column: Column) -> None:
    percent = _factor(column)
    axes.axvline(0, color="#444444", linewidth=1)
    for place, row in enumerate(rows):
        test = row.cells[column.key].test
        if test is None:
            continue
        middle = percent * test.difference
        bounds = [[middle - percent * test.low], [percent * test.high - middle]]
        _point(axes, middle, place, _index(row, comparison), bounds if math.isfinite(test.low) else None)
    axes.set_xlabel("difference from the first row")
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", visible=False)


def _point(axes: Axes, value: float, place: int, index: int, error: Any) -> None:
    axes.errorbar(
        [value], [place], xerr=error, fmt=MARKERS[index // len(COLOURS) % len(MARKERS)], markersize=6,
        color=COLOURS[index % len(COLOURS)], elinewidth=1.8, capsize=3,
    )  # fmt: skip


def _losses(comparison: Comparison, curves: Mapping[str, Curve]) -> Plot | None:
    """Training loss as bits per byte of text read, which is comparable between vocabularies, over tokens read."""
    shown = [
        (row, run, curves[run.run_id])
        for row in comparison.finished
        for run in row.runs
        if len(curves.get(run.run_id, ())) > 1
    ]
    if not shown:
        return None
    convertible = all(run.training.get(key) for _, run, _ in shown for key in ("tokens", "text_bytes", "steps"))

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        named: set[str] = set()
        for row, run, curve in shown:
            index = _index(row, comparison)
            steps, losses = zip(*_smoothed(curve), strict=True)
            x, y = _bits(steps, losses, run.training) if convertible else (steps, losses)
            label = None if row_name(row) in named else row_name(row)
            named.add(row_name(row))
            axes.plot(
                x, y, DASHES[index % len(DASHES)], color=COLOURS[index % len(COLOURS)], linewidth=1.5, label=label
            )
        axes.set_xlabel("tokens read (millions)" if convertible else "step")
        axes.set_ylabel("training loss (bits per byte)" if convertible else "training loss (nats per token)")
        figure.legend(loc="outside right center", fontsize=9)

    unit = (
        "in bits per byte of the text read" if convertible else "in nats per token, not comparable between vocabularies"
    )
    caption = f"Training loss {unit}, running mean over a tenth of a run; one line a run, one colour a row."
    ends = "; ".join(f"{row_name(row)} (seed {run.seed}) ends at {curve[-1][1]:.3f} nats" for row, run, curve in shown)
    return picture("loss", caption, f"{caption} {ends}.", (9.2, 4.2), draw)


def _smoothed(curve: Curve) -> Curve:
    """The running mean of a curve over a tenth of its points, at their last step; single batches are noise."""
    window = max(1, len(curve) // 10)
    sums = list(itertools.accumulate((loss for _, loss in curve), initial=0.0))
    return [(curve[i][0], (sums[i + 1] - sums[i + 1 - window]) / window) for i in range(window - 1, len(curve))]


def _bits(
    steps: Sequence[int], losses: Sequence[float], training: Mapping[str, Any]
) -> tuple[list[float], list[float]]:
    tokens = float(training["tokens"])
    scale = tokens / float(training["text_bytes"]) / math.log(2)
    return [step * tokens / float(training["steps"]) / 1e6 for step in steps], [loss * scale for loss in losses]


def _common(rows: Sequence[Row]) -> str:
    shared = [label for index, label in enumerate(rows[0].labels) if all(row.labels[index] == label for row in rows)]
    return " · ".join(shared) or "all rows"


def _index(row: Row, comparison: Comparison) -> int:
    return next(index for index, other in enumerate(comparison.rows) if other is row)


def _finite(value: float | None) -> bool:
    return value is not None and math.isfinite(value)
