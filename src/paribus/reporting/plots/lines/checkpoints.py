"""Scores by checkpoint, where runs were scored at three or more."""

from collections.abc import Sequence

from paribus.reporting.plots.lines.rows import lines_of
from paribus.reporting.plots.lines.series import Axis, Panel, series_plot
from paribus.reporting.plots.picture import Plot
from paribus.reporting.table.cells import Cell
from paribus.reporting.table.column import Column
from paribus.reporting.table.comparison import Comparison, ComparisonRow, cells_by_column
from paribus.reporting.table.layout import heading

FEWEST = 3
"""Checkpoints that make a curve."""
_MOST_LINES = 12


def checkpoints_plot(comparison: Comparison, columns: Sequence[Column]) -> Plot | None:
    """A panel a measure; the amount is the share of its training that a row had behind it."""
    if comparison.checkpoints < FEWEST or not columns:
        return None
    rows = comparison.finished[:_MOST_LINES]
    panels = [_panel(comparison, rows, column) for column in columns]
    caption = f"{' and '.join(heading(column) for column in columns)} by checkpoint"
    return series_plot("by_checkpoint", caption, Axis("share of the training (%)"), lines_of(comparison, rows), panels)


def _panel(comparison: Comparison, rows: Sequence[ComparisonRow], column: Column) -> Panel:
    lines: list[list[tuple[float, Cell]]] = [[] for _ in rows]
    for checkpoint in range(comparison.checkpoints):
        cells = cells_by_column(comparison, [column], checkpoint)
        for line, row, by_column in zip(lines, rows, cells, strict=False):
            share = _share(comparison, row, checkpoint)
            if share is not None:
                line.append((share, by_column[column.key]))
    return Panel(heading(column), column.factor, lines)


def _share(comparison: Comparison, row: ComparisonRow, checkpoint: int) -> float | None:
    """In percent, of the first run that has the checkpoint: those of a row stand at the same shares."""
    for run in row.runs:
        score = comparison.scores.get(run.run_id)
        if score is not None and checkpoint < len(score.steps):
            return 100 * score.steps[checkpoint] / (run.training.get("steps") or max(score.steps) or 1)
    return None
