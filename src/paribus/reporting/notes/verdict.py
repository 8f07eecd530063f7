"""The last sentence under a table: what its numbers allow one to say of the measures that decide."""

from paribus.reporting.notes.prompts import some
from paribus.reporting.table.cells import Cell
from paribus.reporting.table.comparison import Comparison, ComparisonRow
from paribus.reporting.table.layout import change, heading
from paribus.reporting.table.measures import Column

LEVEL = 0.05
_BEGINNING = "What these numbers allow one to say: "

Judged = list[tuple[ComparisonRow, Cell]]


def verdict(comparison: Comparison) -> list[str]:
    """By measure which rows differ from the ones they are compared with, and what may go unseen; nothing untested."""
    judged, tested = [], False
    for column in comparison.columns:
        cells = [(row, row.cells[column.key]) for row in comparison.finished]
        tested = tested or any(cell.test is not None for _, cell in cells)
        if found := [(row, cell) for row, cell in cells if cell.p_holm is not None]:
            judged.append(f"in {heading(column)}, {_of(comparison, column, found)}")
    if judged:
        return [f"{_BEGINNING}{'; '.join(some(judged))}."]
    return [f"{_BEGINNING}not which row is better."] if tested else []


def _of(comparison: Comparison, column: Column, judged: Judged) -> str:
    shown = [(row, cell) for row, cell in judged if cell.p_holm is not None and cell.p_holm < LEVEL]
    unseen = _unseen(judged, column)
    if not shown:
        _, largest = max(judged, key=lambda found: abs(found[1].difference or 0.0))
        difference = f"{_difference(largest, column)}{unseen and f', and {unseen}'}"
        if len(judged) == 1:
            return f"the difference is not beyond chance: it is {difference}"
        return f"no difference is beyond chance; the largest is {difference}"
    named = [f"{comparison.row_name(row)}, by {_difference(cell, column)}" for row, cell in shown]
    others = len(judged) - len(shown)
    rest = "the other row" if others == 1 else f"the {others} other rows"
    not_shown = f"; not for {rest}{unseen and f', where {unseen}'}" if others else ""
    return f"the difference is beyond chance for {'; for '.join(some(named))}{not_shown}"


def _difference(cell: Cell, column: Column) -> str:
    low, high = (change(bound, column) for bound in cell.interval or (0.0, 0.0))
    return f"{change(cell.difference or 0.0, column)} (95 % interval {low} to {high})"


def _unseen(judged: Judged, column: Column) -> str:
    """What differences the test would often miss; empty where that is not known."""
    known = [cell.mde for _, cell in judged if cell.mde is not None]
    if not known:
        return ""
    return f"a true difference below {change(max(known), column).removeprefix('+')} could easily go unseen"
