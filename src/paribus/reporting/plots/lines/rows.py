"""Lines of pictures that are rows of the table."""

from collections.abc import Sequence

from paribus.reporting.plots.lines.series import Line
from paribus.reporting.plots.looks import looks_of
from paribus.reporting.table.comparison import Comparison, ComparisonRow


def lines_of(comparison: Comparison, rows: Sequence[ComparisonRow]) -> list[Line]:
    """A line a row."""
    looks = looks_of(comparison)
    return [Line(comparison.row_name(row), looks.of(row.labels), comparison.place(row)) for row in rows]
