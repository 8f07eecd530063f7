"""Plots of a comparison as SVG. A row has the same look and place in every plot."""

import itertools
import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

import matplotlib as mpl
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator
from numpy.typing import NDArray

from paribus.reporting.columns import Cell, finite
from paribus.reporting.compare import Arm, Comparison, cells_by_column
from paribus.reporting.figures_data import OverlapMatrix, Segmentation, overlap_plot, token_frequencies, token_lengths
from paribus.reporting.measures import AVERAGE, Measure
from paribus.reporting.plots import (
    Axis,
    Line,
    Looks,
    Panel,
    Plot,
    lines_of,
    looks_of,
    mark,
    picture,
    series_plot,
    style,
)
from paribus.reporting.runs import FinishedRun
from paribus.reporting.significance import CONFIDENCE
from paribus.reporting.table import heading
from paribus.reporting.verdict import Decision

MOST_ROWS = 24
"""Rows that a picture has room for."""


@dataclass(frozen=True)
class Curve:
    """Metrics that a run logged while training: equally long sequences."""

    steps: Sequence[int]
    losses: Sequence[float]
    """Nats a token."""
    amounts: Mapping[str, Sequence[float]]
    """`train/tokens`, `train/text_bytes`, `train/flops` so far; empty where a run did not say."""


def plots(
    comparison: Comparison,
    curves: Mapping[str, Curve],
    overlap: OverlapMatrix | None = None,
    findings: Sequence[Decision] = (),
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
            *(_score_plot(comparison, rows, column) for column in main_columns(comparison)),
            _effects_plot(comparison, rows),
            *(_scaling_plot(comparison, main_columns(comparison), axis) for axis in _SCALING_AXES),
            examples_plot(comparison),
            checkpoints_plot(comparison, main_columns(comparison)),
            learning_curves(comparison, rows, curves),
            token_lengths(segmentations(comparison, rows), "the held-out text"),
            token_frequencies(segmentations(comparison, rows), "the held-out text"),
            overlap_plot(overlap) if overlap else None,
            embedding_plot(comparison, rows, overlap.own if overlap else {}),
        ]
    return [plot for plot in made if plot is not None]


def main_columns(comparison: Comparison) -> list[Measure]:
    """The columns that sum a table up: the average over tasks or the task there is, and bits per byte."""
    scored = [column for column in comparison.columns if column.scored]
    tasks = [column for column in scored if column.parts and column.key != AVERAGE]
    means = [column for column in scored if column.key == AVERAGE] or [c for c in tasks if c.key.endswith("/mean")]
    return [*(means[:1] or tasks[:1]), *[column for column in scored if column.kind == "bits_per_byte"]]


def segmentations(comparison: Comparison, rows: Sequence[Arm]) -> list[Segmentation]:
    """Segmentations of the held-out text by rows; rows that cut it alike are one."""
    groups: dict[tuple[tuple[str, int], ...], list[tuple[Arm, Mapping[str, Any]]]] = {}
    for row in rows:
        score = comparison.scores.get(row.runs[0].run_id)
        statistics = score.statistics if score else {}
        if lengths := tuple(statistics.get("token_lengths", {}).items()):
            groups.setdefault(lengths, []).append((row, statistics))
    segmentations = []
    for lengths, alike in groups.items():
        first, statistics = alike[0]
        shared = [label for index, label in enumerate(first.labels) if all(r.labels[index] == label for r, _ in alike)]
        name = " · ".join(map(comparison.name, shared)) or "all rows"
        place = comparison.place(first) if len(alike) == 1 else None
        curve = statistics.get("frequency_by_rank", ())
        segmentations.append(Segmentation(name, looks_of(comparison).of(first.labels), dict(lengths), curve, place))
    return segmentations


def _score_plot(comparison: Comparison, every: Sequence[Arm], column: Measure) -> Plot | None:
    rows = [row for row in every if finite(row.cells[column.key].value)]
    if not rows:
        return None
    tested = [row for row in rows if row.cells[column.key].test is not None]

    def draw(figure: Figure) -> None:
        if not tested:
            _draw_values(figure.subplots(), rows, comparison, column)
            return
        left, right = figure.subplots(1, 2, sharey=True, gridspec_kw={"width_ratios": [1.25, 1]})
        _draw_values(left, rows, comparison, column)
        for place, row in enumerate(rows):
            _draw_difference(right, row, place, comparison, column)
        base, *others = comparison.baseline_rows
        first = base is comparison.rows[0] and not others
        _centre_on_zero(right, "difference from the first row" if first else "difference")

    text = f"{column.group}, {column.label}" if column.field else "held-out text"
    scored = "accuracy" if column.kind == "accuracy" else "score"
    name = scored if column.parts else column.key.replace("/", "_")
    title = _percent_of(column).capitalize() if column.kind == "accuracy" else "Score"
    what = f"{title}, {heading(column)}" if column.parts else f"Bits per byte of {text}"
    spread = " ± as in the table" if any(row.cells[column.key].half_width is not None for row in rows) else ""
    caption = f"{what}. {'First: mean' if tested else 'Mean'}{spread}."
    caption += f" Second: difference from {_compared_with(comparison)}; {_intervals(comparison)}" if tested else ""
    count = len(comparison.finished)
    caption += f" The first {MOST_ROWS} of {count:,} rows." if count > MOST_ROWS else ""
    numbers = "; ".join(
        f"{comparison.row_name(row)} {column.factor * (row.cells[column.key].value or 0):.3f}" for row in rows
    )
    return picture(name, caption, f"{what}: {numbers}.", (9.2 if tested else 6.5, _height(len(rows))), draw)


_COLUMN_UNITS = {
    "accuracy": "percentage points",
    "percent": "points",
    "bits_per_byte": "bits per byte, negative is better",
    "perplexity": "bits, negative is better",
}


def _intervals(comparison: Comparison) -> str:
    cells = [row.cells[column.key] for row in comparison.finished for column in comparison.columns]
    if any(cell.crossed for cell in cells):
        return (
            "95 % intervals, of what decides over all effects together: thin over seeds and items, thick over the "
            "items of these models alone."
        )
    return "95 % intervals over the items of these models alone."


def _effects_plot(comparison: Comparison, every: Sequence[Arm]) -> Plot | None:
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
            _draw_effects(panel, [line for line in lines if (line[0].kind, line[0].factor) == kind], comparison)

    judged = any(row.cells[column.key].p_adjusted is not None for column, row in lines)
    filled = " Filled: beyond chance, adjusted for all that decides." if judged else ""
    caption = f"Effects: difference from {_compared_with(comparison)}; {_intervals(comparison)}{filled}"
    texts = "; ".join(_effect_text(row, column, comparison) for column, row in lines)
    return picture("effects", caption, f"{caption} {texts}.", (9.2, 0.6 * len(kinds) + _height(len(lines))), draw)


def _effect_text(row: Arm, column: Measure, comparison: Comparison) -> str:
    cell = row.cells[column.key]
    middle, bounds = column.factor * (cell.difference or 0.0), cell.interval
    interval = f" ({column.factor * bounds[0]:+.3f} to {column.factor * bounds[1]:+.3f})" if bounds else ""
    return f"{heading(column)}, {comparison.row_name(row)}: {middle:+.3f}{interval}"


def _draw_effects(axes: Axes, lines: Sequence[tuple[Measure, Arm]], comparison: Comparison) -> None:
    for place, (column, row) in enumerate(lines):
        p_value = row.cells[column.key].p_adjusted
        significant = p_value is not None and p_value < 1 - CONFIDENCE
        _draw_difference(axes, row, place, comparison, column, hollow=not significant)
        if place and lines[place - 1][0] != column:
            axes.axhline(place - 0.5, color="#e4e4e4", linewidth=0.8)
    several = len({row.labels for _, row in lines}) > 1
    names = [f"{heading(column)}{f', {comparison.row_name(row)}' if several else ''}" for column, row in lines]
    _list_names(axes, names)
    _centre_on_zero(axes, _COLUMN_UNITS.get(lines[0][0].kind, "difference"))


def _percent_of(column: Measure) -> str:
    return " and ".join(column.families) or "accuracy"


def _compared_with(comparison: Comparison) -> str:
    return "its baseline" if len(comparison.baseline_rows) > 1 else comparison.row_name(comparison.baseline_rows[0])


def _height(lines: int) -> float:
    return 1.1 + 0.34 * lines


def _draw_values(axes: Axes, rows: Sequence[Arm], comparison: Comparison, column: Measure) -> None:
    for place, row in enumerate(rows):
        cell = row.cells[column.key]
        look, value = looks_of(comparison).of(row.labels), column.factor * (cell.value or 0.0)
        error = column.factor * cell.half_width if cell.half_width else None
        drawn, spread = [], ""
        if error:
            spread = f" ± {error:.3f}"
            drawn += axes.plot([value - error, value + error], [place, place], color=look.colour, linewidth=1.8)
        drawn += axes.plot([value], [place], look.marker, color=look.colour, markersize=6)
        mark(drawn, f"{heading(column)}, {comparison.row_name(row)}: {value:.3f}{spread}", comparison.place(row))
    if column.key in comparison.chance:
        level = column.factor * comparison.chance[column.key]
        axes.axvline(level, color="#666666", linestyle=":", linewidth=1.2)
        axes.text(level, -0.62, "chance", color="#555555", fontsize=8, ha="center", va="bottom")
    _list_names(axes, [comparison.row_name(row) for row in rows])
    better = f" ({column.better} is better)" if column.better == "lower" else ""
    axes.set_xlabel(f"{_percent_of(column)} in %" if column.kind == "accuracy" else f"{column.label}{better}")
    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.grid(axis="y", visible=False)


def _draw_difference(
    axes: Axes, row: Arm, place: int, comparison: Comparison, column: Measure, *, hollow: bool = False
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
    text = f"{_effect_text(row, column, comparison)}, difference from {_compared_with(comparison)}"
    mark(drawn, text, comparison.place(row))


def _centre_on_zero(axes: Axes, label: str) -> None:
    axes.axvline(0, color="#444444", linewidth=1, zorder=0)
    axes.set_xlabel(label)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", visible=False)


def _list_names(axes: Axes, names: Sequence[str]) -> None:
    """A line each, the first one above."""
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)


FACTORS = "factors"
MOST_EFFECTS = 24
"""Effects that are drawn, of all measures together."""
_INK = "#444444"
_DIFFERENCE_UNITS = {"accuracy": "percentage points", "percent": "points", "perplexity": "bits"}


def factors_plot(comparison: Comparison, findings: Sequence[Decision]) -> Plot | None:
    """A panel a measure and a line an effect; None where there is no effect."""
    drawn = findings[:MOST_EFFECTS]
    if not drawn:
        return None
    by_column = [(c, [each for each in drawn if each.effect.column == c.key]) for c in comparison.columns]
    panels = [(column, own) for column, own in by_column if own]

    def draw(figure: Figure) -> None:
        heights = [len(own) + 1 for _, own in panels]
        axes = figure.subplots(len(panels), 1, squeeze=False, gridspec_kw={"height_ratios": heights})[:, 0]
        for panel, (column, own) in zip(axes, panels, strict=True):
            _draw_factors(panel, column, own, comparison)

    left = f" The first {MOST_EFFECTS} of {len(findings)}." if len(findings) > MOST_EFFECTS else ""
    caption = (
        "What each factor does, over all values of the others: intervals over seeds and items of 95 % confidence, all "
        f"effects together. Filled: beyond chance, and not due to the text that was read.{left}"
    )
    texts = " ".join(each.text for each in drawn)
    return picture(FACTORS, caption, texts, (9.2, 0.5 * len(panels) + 0.6 + 0.36 * len(drawn)), draw)


def _draw_factors(axes: Axes, column: Measure, findings: Sequence[Decision], comparison: Comparison) -> None:
    names = []
    for place, finding in enumerate(findings):
        test, contrast, colour = finding.effect.test, finding.effect.contrast, None
        if len(contrast.factors) == 1:
            colour = looks_of(comparison).colour_of(contrast.factors[0], contrast.values[0])
        joint = contrast.kind == "interaction"
        value, reference = (
            (" × " if joint else " · ").join(map(comparison.name, side))
            for side in (contrast.values, contrast.references)
        )
        names.append(value if joint else f"{value} against {reference}")
        ends = [] if finding.state == "unjudged" else [column.factor * test.low, column.factor * test.high]
        line = axes.plot(ends, [place] * len(ends), color=colour or _INK, linewidth=1.8)
        face = "#ffffff" if finding.state in ("reserved", "undecided", "unjudged") else colour or _INK
        middle = [column.factor * test.difference]
        line += axes.plot(middle, [place], "d" if joint else "o", color=colour or _INK, markerfacecolor=face)
        mark(line, finding.text)
    _list_names(axes, names)
    better = {"lower": "; to the left is better", "higher": "; to the right is better"}.get(column.better or "", "")
    unit = f", {_DIFFERENCE_UNITS[column.kind]}" if column.kind in _DIFFERENCE_UNITS else ""
    _centre_on_zero(axes, f"difference in {heading(column)}{unit}{better}")
    axes.xaxis.set_major_locator(MaxNLocator(6))


_MOST_LINES = 12
"""Rows that a picture of lines has room for."""


_AMOUNT_UNITS = {
    "parameters": "parameters",
    "tokens": "tokens read",
    "text_bytes": "bytes of text read",
    "flops": "FLOPs",
}
_SCALING_AXES = (("size", "model", ("parameters",)), ("budget", "budget", ("tokens", "text_bytes", "flops")))
"""Name, configuration group whose factors make it vary, and the numbers of training that it may be."""


def _scaling_plot(
    comparison: Comparison, columns: Sequence[Measure], axis: tuple[str, str, tuple[str, ...]]
) -> Plot | None:
    """A plot over a size or budget that varies between rows with otherwise the same labels."""
    others = [index for index, factor in enumerate(comparison.factors) if factor.split(".")[0] != axis[1]]
    groups: dict[tuple[str, ...], list[Arm]] = {}
    for row in comparison.finished:
        groups.setdefault(tuple(row.labels[index] for index in others), []).append(row)

    def varies(field: str) -> bool:
        amounts = [[_mean_amount(row, field) for row in rows] for rows in groups.values()]
        return any(min(each) > 0 and max(each) > 1.01 * min(each) for each in amounts)

    field = next(filter(varies, axis[2]), None)
    if len(others) == len(comparison.factors) or field is None or not columns:
        return None
    shown = list(groups.items())[:_MOST_LINES]
    # Of all rows of the table, so that a value has the colour that it has in other pictures.
    every = [[row.labels[index] for index in others] for row in comparison.rows]
    looks = Looks([comparison.factors[index] for index in others], every)
    lines = [Line(" · ".join(map(comparison.name, labels)) or "all rows", looks.of(labels)) for labels, _ in shown]
    amounts = [[(_mean_amount(row, field), row) for row in rows] for _, rows in shown]
    panels = []
    for column in columns:
        points = [[(amount, row.cells[column.key]) for amount, row in line] for line in amounts]
        panels.append(Panel(heading(column), column.factor, points))
    caption = f"{' and '.join(heading(column) for column in columns)} by {_AMOUNT_UNITS[field]}"
    return series_plot(f"by_{axis[0]}", caption, Axis(_AMOUNT_UNITS[field], logarithmic=True), lines, panels)


def _mean_amount(row: Arm, field: str) -> float:
    return sum(float(run.training.get(field) or 0.0) for run in row.runs) / len(row.runs)


FEWEST_SHOTS = 3
"""Numbers of examples that make a curve."""
_MOST_EXAMPLE_PANELS = 4


def examples_plot(comparison: Comparison) -> Plot | None:
    """A panel for each mean over tasks that the table has; where it has none, for each of the first tasks."""
    numbers: dict[tuple[str, str], set[int]] = {}
    for part in (part for column in comparison.columns for part in column.parts):
        numbers.setdefault((part.task, part.metric), set()).update(part.shots)

    def common_shots(column: Measure) -> list[int]:
        each = {frozenset(numbers[part.task, part.metric]) for part in column.parts}
        shots = sorted(each.pop()) if len(each) == 1 else []
        return shots if len(shots) >= FEWEST_SHOTS else []

    curves = [column for column in comparison.columns if column.scored and common_shots(column)]
    several = [column for column in curves if len(column.parts) > 1]
    tasks = [replace(column, parts=tuple(replace(part, shots=()) for part in column.parts)) for column in curves]
    chosen = several or list({column.parts: column for column in tasks}.values())
    if not chosen:
        return None
    shots, rows, panels = common_shots(chosen[0]), comparison.finished[:_MOST_LINES], []
    for column in [column for column in chosen if common_shots(column) == shots][:_MOST_EXAMPLE_PANELS]:
        alone = [
            replace(column, key=str(number), parts=tuple(replace(part, shots=(number,)) for part in column.parts))
            for number in shots
        ]
        by_row = cells_by_column(comparison, alone)[: len(rows)]
        lines = [[(float(place), cells[own.key]) for place, own in enumerate(alone)] for cells in by_row]
        panels.append(Panel(column.group, column.factor, lines))
    caption = f"{' and '.join(panel.label for panel in panels)} by the number of examples in the prompt"
    axis = Axis("examples in the prompt", ticks=[*map(str, shots)])
    return series_plot("by_examples", caption, axis, lines_of(comparison, rows), panels)


FEWEST_CHECKPOINTS = 3
"""Checkpoints that make a curve."""


def checkpoints_plot(comparison: Comparison, columns: Sequence[Measure]) -> Plot | None:
    """A panel a measure; the amount is the share of its training that a row had behind it."""
    if comparison.checkpoints < FEWEST_CHECKPOINTS or not columns:
        return None
    rows, panels = comparison.finished[:_MOST_LINES], []
    for column in columns:
        lines: list[list[tuple[float, Cell]]] = [[] for _ in rows]
        for checkpoint in range(comparison.checkpoints):
            cells = cells_by_column(comparison, [column], checkpoint)
            for line, row, by_column in zip(lines, rows, cells, strict=False):
                share = _training_share(comparison, row, checkpoint)
                if share is not None:
                    line.append((share, by_column[column.key]))
        panels.append(Panel(heading(column), column.factor, lines))
    caption = f"{' and '.join(heading(column) for column in columns)} by checkpoint"
    return series_plot("by_checkpoint", caption, Axis("share of the training (%)"), lines_of(comparison, rows), panels)


def _training_share(comparison: Comparison, row: Arm, checkpoint: int) -> float | None:
    """Percent of the first run that has the checkpoint: those of a row stand at the same shares."""
    for run in row.runs:
        score = comparison.scores.get(run.run_id)
        if score is not None and checkpoint < len(score.steps):
            return 100 * score.steps[checkpoint] / (run.training.get("steps") or max(score.steps) or 1)
    return None


EVENTS, LOSS = "events.jsonl", "train/loss"
_CURVE_AXES = {"train/tokens": "tokens read", "train/text_bytes": "bytes of text read", "train/flops": "FLOPs"}
_CURVE_POINTS = 400
"""Points of a curve that a picture can show."""

LEARNING_CURVES = "learning_curves"
"""Name of the picture."""


def read_curves(runs: Sequence[FinishedRun]) -> dict[str, Curve]:
    """Curves from the runs' events, by run id; runs without events have none."""
    return {run.run_id: curve for run in runs if (curve := _read_curve(run)) is not None}


def learning_curves(comparison: Comparison, rows: Sequence[Arm], curves: Mapping[str, Curve]) -> Plot | None:
    """Lines against tokens, bytes and FLOPs, a row's mean and thin its runs; without those, the loss against steps."""
    shown = [
        (row, run, curves[run.run_id])
        for row in rows
        for run in row.runs
        if run.run_id in curves and len(curves[run.run_id].steps) > 1
    ]
    if not shown:
        return None
    names = [name for name in _CURVE_AXES if all(curve.amounts.get(name) for _, _, curve in shown)]
    # With tokens and bytes the loss has a unit that vocabularies share.
    names = names if {"train/tokens", "train/text_bytes"} <= set(names) else []
    lines = {name: _curve_lines(shown, name) for name in names or [""]}
    unit = "bits per byte" if names else "nats per token"

    def draw(figure: Figure) -> None:
        panels = figure.subplots(1, len(lines), sharey=True, squeeze=False)[0]
        for panel, (name, drawn) in zip(panels, lines.items(), strict=True):
            for line in drawn:
                _draw_curve(panel, line, comparison, named=panel is panels[0])
            panel.set_xlabel(_CURVE_AXES.get(name, "step"))
            panel.xaxis.set_major_formatter(EngFormatter(sep=""))
        panels[0].set_ylabel(f"training loss ({unit})")
        figure.legend(loc="outside lower center", fontsize=9, ncols=3 if len(rows) > 4 else 2)

    scale = "in bits per byte of the text read" if names else "in nats per token, not comparable between vocabularies"
    several = any(line.run is None for drawn in lines.values() for line in drawn)
    what = "a row's mean over seeds, and thin each of its runs" if several else "a line a run"
    coloured, shaped = looks_of(comparison).legend_factors
    if coloured is not None and shaped:
        shapes = " and ".join(map(comparison.name, shaped))
        what += f"; colours by {comparison.name(coloured)}, dashes by {shapes}"
    caption = f"Training loss {scale}, running mean over a tenth of a run; {what}."
    ends = "; ".join(
        f"{comparison.row_name(line.row)} (seed {line.run.seed}) ends at {line.y[-1]:.3f}"
        for line in next(iter(lines.values()))
        if line.run is not None
    )
    height = 3.6 + 0.2 * math.ceil(len(rows) / (3 if len(rows) > 4 else 2))
    return picture(LEARNING_CURVES, caption, f"{caption} {ends}.", (9.2, height), draw)


@dataclass(frozen=True)
class _CurveLine:
    """Curve of one run, or the mean of a row's runs, where `run` is None."""

    row: Arm
    run: FinishedRun | None
    x: Sequence[float]
    y: Sequence[float]
    beside: bool = False
    """True if the mean of its row is drawn too."""
    first: bool = True
    """True if the legend has it for its row."""


def _curve_lines(shown: Sequence[tuple[Arm, FinishedRun, Curve]], name: str) -> list[_CurveLine]:
    """Curves of runs first, so that means lie above them. Runs of other steps, such as unfinished ones, have none."""
    runs, means = [], []
    for group in (list(runs) for _, runs in itertools.groupby(shown, key=lambda each: each[0].labels)):
        # Lines of many steps have about as many points as those of a few.
        averaged = len(group) > 1 and len({tuple(curve.steps) for _, _, curve in group}) == 1
        own = [
            _CurveLine(row, run, *_running_means(curve, name), averaged, first=not averaged and place == 0)
            for place, (row, run, curve) in enumerate(group)
        ]
        runs += own
        if averaged:
            x = [fmean(at) for at in zip(*(line.x for line in own), strict=True)]
            y = [fmean(at) for at in zip(*(line.y for line in own), strict=True)]
            means.append(_CurveLine(group[0][0], None, x, y))
    return runs + means


def _draw_curve(panel: Axes, line: _CurveLine, comparison: Comparison, *, named: bool) -> None:
    look, name = looks_of(comparison).of(line.row.labels), comparison.row_name(line.row)
    dashes, width, alpha = ("-", 0.6, 0.45) if line.beside else (look.dashes, 1.6, None)
    options: dict[str, Any] = {"linestyle": dashes, "linewidth": width, "alpha": alpha, "color": look.colour}
    drawn = panel.plot(line.x, line.y, label=name if named and line.first else None, **options)
    whose = "mean over seeds" if line.run is None else f"seed {line.run.seed}, run {line.run.run_id[:8]}"
    mark(drawn, f"{name}, {whose}", comparison.place(line.row))


def _read_curve(run: FinishedRun) -> Curve | None:
    """Metrics of training only: most lines of a log are others, and need not be parsed."""
    path = run.directory / EVENTS
    if not path.is_file():
        return None
    values: dict[str, dict[int, float]] = {name: {} for name in (LOSS, *_CURVE_AXES)}
    names = tuple(f'"{name}"'.encode() for name in values)
    for line in path.read_bytes().splitlines():
        if not any(name in line for name in names):
            continue
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if event.get("event") == "metric" and event.get("name") in values and math.isfinite(event["value"]):
            values[event["name"]][int(event["step"])] = float(event["value"])
    steps = sorted(values[LOSS])
    amounts = {name: [values[name][step] for step in steps] for name in _CURVE_AXES if values[name].keys() >= {*steps}}
    return Curve(steps, [values[LOSS][step] for step in steps], amounts) if steps else None


def _running_means(curve: Curve, name: str) -> tuple[list[float], list[float]]:
    """Running means over a tenth of the points, at their last one, over an amount; batches are noise."""
    window = max(1, len(curve.losses) // 10)
    sums = list(itertools.accumulate(curve.losses, initial=0.0))
    places = range(window - 1, len(curve.losses), max(1, len(curve.losses) // _CURVE_POINTS))
    means = [(sums[place + 1] - sums[place + 1 - window]) / window for place in places]
    if not name:
        return [float(curve.steps[place]) for place in places], means
    factors = [_bits_per_nat(curve, place, window) for place in places]
    x = [curve.amounts[name][place] for place in places]
    return x, [mean * factor for mean, factor in zip(means, factors, strict=True)]


def _bits_per_nat(curve: Curve, place: int, window: int) -> float:
    """Bits a byte for a nat a token in the text of a window, from the tokens and bytes that were read in it."""
    tokens, size = curve.amounts["train/tokens"], curve.amounts["train/text_bytes"]
    before = place - window
    read = tokens[place] - (tokens[before] if before >= 0 else 0.0)
    text = size[place] - (size[before] if before >= 0 else 0.0)
    return read / text / math.log(2) if text > 0 else math.nan


EMBEDDINGS = "embeddings.parquet"
ALONE = "only here"
_TOKEN_CLASSES = {"unused": "#8C8C8C", "rare": "#DDA6EE", "medium": "#B565D9", "frequent": "#7B2CBF", ALONE: "#C1121F"}
"""Their colours, those below first; none is that of a factor's value."""
_CLOUD_POINTS = 1_500
"""Tokens of a class that a panel has room for."""
_MOST_CLOUDS, _CLOUDS_ABREAST = 8, 4


@dataclass(frozen=True)
class _Cloud:
    """The projected tokens of one row by class, (tokens, 2) each, and the uniformity of its embeddings."""

    name: str
    points: Mapping[str, NDArray[np.float32]]
    uniformity: Mapping[str, float | None]


def embedding_plot(comparison: Comparison, rows: Sequence[Arm], own: Mapping[str, Collection[int]]) -> Plot | None:
    """A panel for each row, of the run of its first seed; None where no run has the file.

    `own` has, by identifier of a run, the ids of tokens that no other vocabulary of the comparison has: with BPE and
    Scaffold-BPE the scaffold tokens in the panel of the one, and what replaced them in that of the other (Scaffold-BPE,
    Figure 6).
    """
    clouds = [cloud for row in rows if (cloud := _cloud(comparison, row, own)) is not None]
    shown = clouds[:_MOST_CLOUDS]
    if not shown:
        return None
    columns = min(_CLOUDS_ABREAST, len(shown))
    lines = math.ceil(len(shown) / columns)

    def draw(figure: Figure) -> None:
        panels = figure.subplots(lines, columns, squeeze=False).ravel()
        for panel, cloud in zip(panels, shown, strict=False):
            _draw_cloud(panel, cloud)
        for panel in panels[len(shown) :]:
            panel.remove()
        most = max(panels[: len(shown)], key=lambda panel: len(panel.get_legend_handles_labels()[1]))
        handles, labels = most.get_legend_handles_labels()
        figure.legend(
            handles[::-1], labels[::-1], loc="outside lower center", fontsize=9, ncols=len(handles), markerscale=3
        )

    several = any(len(row.runs) > 1 for row in rows)
    caption = "Input embeddings of the tokens at the last checkpoint on their first two principal components"
    caption += f"{', of the first seed' if several else ''}; scales differ. Frequent, medium, rare: thirds of the "
    caption += "tokens that occur in the held-out text, by how often; unused: those that do not occur there. U: "
    caption += "uniformity of those that occur: 0 where all have one direction, about −4 for random ones."
    if any(len(cloud.points[ALONE]) for cloud in shown):
        caption += f" {ALONE.capitalize()}: tokens that occur and that no other vocabulary of the table has."
    if len(clouds) > len(shown):
        caption += f" The first {len(shown)} of {len(clouds)} rows."
    texts = []
    for cloud in shown:
        numbers = (f"{name} {value:.3f}" for name, value in cloud.uniformity.items() if value is not None)
        texts.append(f"{cloud.name}: {', '.join(numbers)}")
    size = (max(4.5, 2.6 * columns), 2.9 * lines + 0.4)
    return picture("embeddings", caption, f"{caption} Uniformity of {'; '.join(texts)}.", size, draw)


def _cloud(comparison: Comparison, row: Arm, own: Mapping[str, Collection[int]]) -> _Cloud | None:
    run = min(row.runs, key=lambda run: run.seed)
    scores, path = comparison.scores.get(run.run_id), run.scores / EMBEDDINGS if run.scores else None
    if scores is None or path is None or not path.is_file() or not scores.uniformity:
        return None
    try:
        table = pq.read_table(path, columns=["id", "class", "x", "y"])
    except (pa.ArrowException, KeyError):
        return None
    names = table["class"].to_numpy(zero_copy_only=False)
    places = np.column_stack([table["x"].to_numpy(), table["y"].to_numpy()])
    alone = np.isin(table["id"].to_numpy(), list(own.get(run.run_id, ()))) & (names != "unused")
    points = {}
    for name in _TOKEN_CLASSES:
        points[name] = places[alone if name == ALONE else (names == name) & ~alone]
        if (count := len(points[name])) > _CLOUD_POINTS:  # evenly spaced, so that the same are shown each time
            points[name] = points[name][np.linspace(0, count - 1, _CLOUD_POINTS).round().astype(np.int64)]
    return _Cloud(comparison.row_name(row), points, scores.uniformity)


def _draw_cloud(axes: Axes, cloud: _Cloud) -> None:
    """The dots are pixels in the SVG, too: thousands of them would make a page heavy."""
    for name, points in cloud.points.items():
        if name == ALONE and not len(points):
            continue
        looks: dict[str, Any] = {"s": 3, "color": _TOKEN_CLASSES[name], "alpha": 0.6, "linewidths": 0, "label": name}
        axes.scatter(points[:, 0], points[:, 1], rasterized=True, **looks)
    used = cloud.uniformity.get("used")
    shown = "" if used is None else f"\nU = {used:.2f}".replace("-", "−")
    axes.set_title(cloud.name + shown, fontsize=9)
    axes.set_xticks([])
    axes.set_yticks([])
