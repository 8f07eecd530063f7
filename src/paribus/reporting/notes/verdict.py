"""The last sentence under a table: what its numbers allow one to say of the measures that decide."""

from collections.abc import Iterator
from dataclasses import dataclass

from paribus.reporting.notes.prompts import some
from paribus.reporting.significance.crossed import LEVEL
from paribus.reporting.significance.judgement import too_few_items
from paribus.reporting.significance.least import ITEMS_TO_JUDGE, SEEDS_TO_JUDGE
from paribus.reporting.table.cells import Cell
from paribus.reporting.table.column import Column
from paribus.reporting.table.comparison import Comparison, ComparisonRow
from paribus.reporting.table.layout import change, heading, readable, size, unit_of
from paribus.reporting.table.measures import finite

_BEGINNING = "What these numbers allow one to say: "

Judged = list[tuple[ComparisonRow, Cell]]


def verdict(comparison: Comparison, *, warned: bool) -> list[str]:
    """By measure that decides, which rows are better or worse than the ones they are compared with.

    It says of all others that nothing is said, and why; nothing of a table of one row. `warned` says whether the table
    has warnings, with which it must be read.
    """
    if len(comparison.rows) < 2 or not comparison.primary:
        return []
    deciding = [column for column in comparison.columns if column.scored and column.key in comparison.primary]
    measures = [_Measure(comparison, column) for column in deciding]
    told = [measure.sentence() for measure in measures if measure.judged]
    untold = [measure for measure in measures if not measure.judged]
    if told:
        told += [f"nothing is said of {heading(each.column)}{each.why_nothing()}" for each in untold]
        return [f"{_BEGINNING}{'; '.join(some(told))}.{' Read this with the warnings below.' if warned else ''}"]
    why = untold[0].why_nothing() if untold else ", since the table has no column that decides it"
    return [f"{_BEGINNING}not which row is better{why}."]


@dataclass(frozen=True)
class _Measure:
    """A column that decides the question."""

    comparison: Comparison
    column: Column

    @property
    def judged(self) -> Judged:
        """The rows of which something is said."""
        every = [(row, row.cells[self.column.key]) for row in self.comparison.rows]
        return [(row, cell) for row, cell in every if cell.p_holm is not None]

    def sentence(self) -> str:
        """What is beyond chance, what is not, and of what nothing is said."""
        shown = [(row, cell) for row, cell in self.judged if (cell.p_holm or 0.0) < LEVEL]
        others = [pair for pair in self.judged if pair not in shown]
        parts = [*self._beyond_chance(shown), *self._within_chance(others, alone=not shown), *self._not_judged()]
        return f"in {heading(self.column)}, {'; '.join(parts)}"

    def _beyond_chance(self, shown: Judged) -> list[str]:
        return some(
            [
                f"{self._name(row)} is {self._side(cell)} {self._base(row)} beyond chance, by {self._size(cell)}"
                for row, cell in shown
            ]
        )

    def _within_chance(self, others: Judged, *, alone: bool) -> Iterator[str]:
        """Of rows that differ by no more than chance may bring, the largest difference, and what may go unseen."""
        if not others:
            return
        row, largest = max(others, key=lambda found: abs(found[1].difference or 0.0))
        by = f"{self._size(largest)}{self._unseen(others)}"
        if len(others) == 1:
            yield f"{self._name(row)} does not differ from {self._base(row)} beyond chance: the difference is {by}"
        else:
            which = f"{len(others)} rows that can be judged" if self._left() else f"{len(others)} others"
            who = "no row differs" if alone and not self._left() else f"none of the {which} differs"
            yield f"{who} beyond chance from the one it is compared with: the largest difference is {by}"

    def _unseen(self, others: Judged) -> str:
        """What true differences these tests would often miss, all those of the table adjusted for each other."""
        tests = sum(cell.p_holm is not None for row in self.comparison.rows for cell in row.cells.values())
        known = [cell.crossed.detectable_among(tests) for _, cell in others if cell.crossed and cell.mde is not None]
        if not known:
            return ""
        low, high = size(min(known), self.column), size(max(known), self.column)
        by_row = low if low == high else f"{low} to {high}, by row,"
        return f", and a true one below {by_row} could easily go unseen"

    def why_nothing(self) -> str:
        """What a judgement lacks, as far as it is known; empty otherwise."""
        rows, key = self.comparison.rows, self.column.key
        compared = [row for row in self.comparison.finished if row.baseline is not None]
        bases = [rows[row.baseline] for row in compared if row.baseline is not None]
        cells = [row.cells[key] for row in self.comparison.finished]
        if bases and not any(base.runs for base in bases):
            return ", since the row that others are compared with has no finished run"
        if not compared:
            alone = all(row.baseline is None for row in rows)
            why = "has another beside it that experiment.table.baseline compares it with"
            return f", since no row {why if alone else 'that is compared with another has a finished run'}"
        if not any(finite(base.cells[key].value) for base in bases if base.runs):
            return ", since the row that others are compared with has no score there"
        if few := [cell for cell in cells if too_few_items(self.column, cell)]:
            more = "evaluation.heldout_documents, which trains nothing anew, corpus.heldout or a larger corpus"
            more = f" (more with {more})" if not self.column.parts else ""
            fewest = min(few, key=lambda cell: cell.fewest)
            fits = "the prompts that fit every run are those" if fewest.fitting else "its scores are"
            return f", since {fits} of {fewest.fewest} items and a judgement takes {ITEMS_TO_JUDGE}{more}"
        if all(row.cells[key].lossy != rows[row.baseline or 0].cells[key].lossy for row in compared):
            return ", since the tokenizer of one of two rows that are compared loses text, and the other's does not"
        few_seeds = self.column.of_model and any(cell.seeds < SEEDS_TO_JUDGE for cell in cells)
        return f", since a judgement takes {SEEDS_TO_JUDGE} seeds a row" if few_seeds else ""

    def _left(self) -> list[ComparisonRow]:
        """Rows that are compared with another, and of which nothing is said."""
        judged = {row.labels for row, _ in self.judged}
        return [row for row in self.comparison.rows if row.baseline is not None and row.labels not in judged]

    def _not_judged(self) -> list[str]:
        left = self._left()
        return [f"nothing is said of {', '.join(some([self._name(row) for row in left]))}"] if left else []

    def _name(self, row: ComparisonRow) -> str:
        return self.comparison.row_name(row)

    def _base(self, row: ComparisonRow) -> str:
        return self._name(self.comparison.rows[row.baseline or 0])

    def _side(self, cell: Cell) -> str:
        if self.column.better is None:
            return "different from"
        higher = (cell.difference or 0.0) > 0
        return "better than" if higher == (self.column.better == "higher") else "worse than"

    def _size(self, cell: Cell) -> str:
        difference, (low, high) = cell.difference or 0.0, cell.interval or (0.0, 0.0)
        column = readable(self.column, max(abs(difference), (high - low) / 2))
        bounds = f"{change(low, column)} to {change(high, column)}"
        return f"{change(difference, column)}{unit_of(column)} (95 % interval {bounds})"
