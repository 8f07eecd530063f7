"""Scores by the number of examples in the prompt, where tasks have three or more."""

from collections.abc import Sequence
from dataclasses import replace

from paribus.reporting.plots.lines.rows import lines_of
from paribus.reporting.plots.lines.series import Axis, Panel, series_plot
from paribus.reporting.plots.picture import Plot
from paribus.reporting.table.column import Column, MeasuredTask
from paribus.reporting.table.comparison import Comparison, ComparisonRow, cells_by_column

FEWEST = 3
"""Numbers of examples that make a curve."""
_MOST_PANELS, _MOST_LINES = 4, 12


def examples_plot(comparison: Comparison) -> Plot | None:
    """A panel for each mean over tasks that the table has; where it has none, for each of the first tasks."""
    numbers = _numbers(comparison)
    curves = [column for column in comparison.columns if column.scored and column.parts and _shots(column, numbers)]
    several = [column for column in curves if len(column.parts) > 1]
    chosen = several or list({column.parts: column for column in map(_whole, curves)}.values())
    shots = [_shots(column, numbers) for column in chosen]
    shown = [column for column, own in zip(chosen, shots, strict=True) if own == shots[0]][:_MOST_PANELS]
    if not shown:
        return None
    rows = comparison.finished[:_MOST_LINES]
    panels = [_panel(comparison, rows, column, shots[0]) for column in shown]
    what = " and ".join(panel.label for panel in panels)
    caption = f"{what} by the number of examples in the prompt"
    axis = Axis("examples in the prompt", ticks=[*map(str, shots[0])])
    return series_plot("by_examples", caption, axis, lines_of(comparison, rows), panels)


def _whole(column: Column) -> Column:
    """The column of a task without a number of shots."""
    return replace(column, parts=tuple(replace(part, shots=()) for part in column.parts))


def _numbers(comparison: Comparison) -> dict[tuple[str, str], tuple[int, ...]]:
    """By task and metric the numbers of examples that the table has."""
    found: dict[tuple[str, str], set[int]] = {}
    for column in comparison.columns:
        for part in column.parts:
            found.setdefault((part.task, part.metric), set()).update(part.shots)
    return {key: tuple(sorted(shots)) for key, shots in found.items()}


def _shots(column: Column, numbers: dict[tuple[str, str], tuple[int, ...]]) -> tuple[int, ...]:
    """The numbers of examples that all its tasks have; none where these make no curve."""
    each = {numbers.get((part.task, part.metric), ()) for part in column.parts}
    shots = each.pop() if len(each) == 1 else ()
    return shots if len(shots) >= FEWEST else ()


def _panel(comparison: Comparison, rows: Sequence[ComparisonRow], column: Column, shots: Sequence[int]) -> Panel:
    found = []
    for number in shots:
        own = replace(column, parts=tuple(_at(part, number) for part in column.parts))
        found.append([by_column[own.key] for by_column in cells_by_column(comparison, [own])])
    lines = [[(float(place), cells[line]) for place, cells in enumerate(found)] for line in range(len(rows))]
    return Panel(column.group, column.factor, lines)


def _at(part: MeasuredTask, shots: int) -> MeasuredTask:
    return replace(part, shots=(shots,))
