"""The differences of every two rows, for a reader who compares with another row than the table does."""

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from paribus.reporting.significance.judgement import against, scores_by_measure, testable
from paribus.reporting.table.cells import item_averages
from paribus.reporting.table.comparison import Comparison, measured

Place = tuple[int, int, str]
"""A row, the row it is compared with, and the key of a column."""


@dataclass(frozen=True)
class Difference:
    """One row less another in one column, in the unit in which the column is tested."""

    value: float
    interval: tuple[float, float] | None
    """95 %, as `Cell.interval`: None of models whose rows share fewer than three seeds or have other grounds."""

    @property
    def turned(self) -> "Difference":
        """The other row less the one."""
        return Difference(-self.value, self.interval and (-self.interval[1], -self.interval[0]))


def pair_differences(comparison: Comparison) -> dict[Place, Difference]:
    """What `Cell.difference` and `Cell.interval` would be, were each row in turn the baseline of all others.

    By the tests that the table itself makes. Pairs that may not be compared, for want of items or scores, are left out.
    """
    rows, columns = comparison.rows, [column for column in comparison.columns if column.scored]
    values = [{column.key: measured(row, column, comparison.scores) for column in columns} for row in rows]
    averages, scores = item_averages(values), scores_by_measure(values, columns)
    found: dict[Place, Difference] = {}
    for column in columns:
        cells = [row.cells[column.key] for row in rows]
        for base, row in combinations(range(len(rows)), 2):
            if testable(column, cells[row], cells[base]):
                test = against(row, base, cells[row], cells[base], scores[column.key])
                of_all = float(np.mean(averages[row][column.key] - averages[base][column.key]))
                interval = (test.low, test.high) if test and test.sufficient else None
                interval = cells[row].interval if rows[row].baseline == base else interval
                one = Difference(test.difference if test else of_all, interval)
                found |= {(row, base, column.key): one, (base, row, column.key): one.turned}
    return found


def pair_count(comparison: Comparison) -> int:
    """How many differences `pair_differences` has at most."""
    rows = len(comparison.finished)
    return rows * (rows - 1) * sum(column.scored for column in comparison.columns)
