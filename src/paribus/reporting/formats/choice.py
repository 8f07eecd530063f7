"""The choice of another baseline on the page: every difference as text, so that the script computes nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paribus.reporting.table.column import Column
from paribus.reporting.table.comparison import Comparison
from paribus.reporting.table.layout import change, readable
from paribus.reporting.table.pairs import Difference, Place, pair_count, pair_differences

MOST_DIFFERENCES = 3_000
"""A page with more has no choice: they grow with the square of the rows, in bytes and in time."""
_NARROW = 0.1
EACH_ITS_OWN = "declared"
"""What is chosen for the baseline of each row, where the table has several."""


@dataclass(frozen=True)
class BaselineChoice:
    """What the control offers, what the script shows, and what is said beside it."""

    options: Sequence[tuple[str, str]] = ()
    """Values, numbers of rows from 1, with their texts; none where nothing can be chosen."""
    data: Mapping[str, Any] | None = None
    """`declared` (a value), `compared` (row -> its declared baseline), and `differences`: baseline -> row -> a text and
    an interval a scored column, null where there is none."""
    interval: str = ""
    """What is said of the intervals."""
    undeclared: str = ""
    """What is said of a baseline that is not the declared one."""
    absent: str = ""
    """Why there is no choice, where a reader would look for one."""


def baseline_choice(comparison: Comparison) -> BaselineChoice:
    """The choice for the table of scores of a comparison."""
    count = pair_count(comparison)
    if count > MOST_DIFFERENCES:
        why = f"all pairs of rows have {count:,} differences, and a page holds at most {MOST_DIFFERENCES:,}"
        return BaselineChoice(absent=f"Another baseline cannot be chosen on this page: {why}.")
    found = pair_differences(comparison) if count else {}
    if not found:
        return BaselineChoice()
    declared = _declared(comparison)
    options = [(EACH_ITS_OWN, "each row's own (declared)")] if declared == EACH_ITS_OWN else []
    for number, row in enumerate(comparison.rows, start=1):
        if row.runs:
            options.append((f"{number}", comparison.row_name(row) + (" (declared)" if declared == f"{number}" else "")))
    against = {
        f"{number}": f"{row.baseline + 1}"
        for number, row in enumerate(comparison.rows, start=1)
        if row.baseline is not None
    }
    data = {"declared": declared, "compared": against, "differences": _texts(comparison, found)}
    return BaselineChoice(options, data, _interval(comparison, found), _undeclared(comparison, found))


def _declared(comparison: Comparison) -> str:
    several = len({row.baseline for row in comparison.rows if row.baseline is not None}) > 1
    return EACH_ITS_OWN if several else f"{comparison.rows.index(comparison.baseline_rows[0]) + 1}"


def _texts(comparison: Comparison, found: Mapping[Place, Difference]) -> dict[str, dict[str, list[Any]]]:
    columns = [_fine(column, found) for column in comparison.columns if column.scored]
    places = [place for place, row in enumerate(comparison.rows) if row.runs]
    return {
        f"{base + 1}": {
            f"{row + 1}": [_text(found.get((row, base, column.key)), column) for column in columns]
            for row in places
            if row != base
        }
        for base in places
    }


def _fine(column: Column, found: Mapping[Place, Difference]) -> Column:
    """The column with as many decimals as its intervals take to be read, but for those far narrower than the widest."""
    known = [each for (_, _, key), each in found.items() if key == column.key]
    widths = [(each.interval[1] - each.interval[0]) / 2 for each in known if each.interval]
    sizes = widths or [abs(each.value) for each in known]
    widest = max(sizes, default=0.0)
    return readable(column, min((size for size in sizes if size >= _NARROW * widest), default=0.0))


def _text(difference: Difference | None, column: Column) -> tuple[str, str] | None:
    if difference is None:
        return None
    low, high = difference.interval or (None, None)
    interval = "" if low is None or high is None else f"{change(low, column)} to {change(high, column)}"
    return change(difference.value, column), interval


def _interval(comparison: Comparison, found: Mapping[Place, Difference]) -> str:
    """What the intervals are over, and where there are none."""
    models = {column.key for column in comparison.columns if column.of_model}
    kinds = {key in models for (_, _, key), each in found.items() if each.interval}
    if not kinds:
        return "without an interval, which takes three seeds that both rows have"
    over = {
        frozenset({True}): "over items and the seeds that both rows have",
        frozenset({False}): "over items alone",
    }.get(
        frozenset(kinds),
        "over items and the seeds that both rows have, of what no training has part in over items alone",
    )
    lacking = any(each.interval is None for each in found.values())
    none = "; none for rows that share fewer than three seeds, or that a warning says are not judged"
    return f"with its 95 % interval {over}{none if lacking else ''}"


def _undeclared(comparison: Comparison, found: Mapping[Place, Difference]) -> str:
    """That it was chosen late, what is not adjusted for that, and what is not shown for it."""
    scored = [column.key for column in comparison.columns if column.scored]
    cells = [row.cells[key] for row in comparison.finished for key in scored]
    late = ", for which the intervals are not adjusted" if any(each.interval for each in found.values()) else ""
    marked = any(cell.p_value is not None or cell.best for cell in cells)
    offered = all(row.runs for row in comparison.baseline_rows)
    whose = "for the declared one" if offered else "where none is chosen"
    alone = f"; p-values, stars and bold are shown {whose} alone" if marked else ""
    return f"This baseline was chosen after the numbers were seen{late}{alone}."
