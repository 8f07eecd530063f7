"""The differences of every two rows, for a reader who compares with another row than the table does."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from paribus.reporting.significance.items import Vector, paired_tests
from paribus.reporting.significance.judgement import of_models, testable
from paribus.reporting.table.cells import item_averages
from paribus.reporting.table.comparison import Comparison, measured

Place = tuple[int, int, str]
"""A row, the row it is compared with, and the key of a column."""


@dataclass(frozen=True)
class Difference:
    """One row less another in one column, in the unit in which the column is tested."""

    value: float
    interval: tuple[float, float] | None
    """95 %, as `Cell.interval`: None of models whose rows share fewer than two seeds or have other grounds."""

    @property
    def turned(self) -> "Difference":
        """The other row less the one."""
        return Difference(-self.value, self.interval and (-self.interval[1], -self.interval[0]))


def pair_differences(comparison: Comparison) -> dict[Place, Difference]:
    """What `Cell.difference` and `Cell.interval` would be, were each row in turn the baseline of all others.

    By the tests that the table itself makes. Pairs that may not be compared, for want of items or scores, are left out.
    """
    rows, columns = comparison.rows, [column for column in comparison.columns if column.scored]
    cells = [row.cells for row in rows]
    values = [{column.key: measured(row, column, comparison.scores) for column in columns} for row in rows]
    averages = item_averages(values)
    pairs = {
        column: [
            (row, base, column.key)
            for base, row in combinations(range(len(rows)), 2)
            if testable(column, cells[row][column.key], cells[base][column.key])
        ]
        for column in columns
    }
    models = [place for column, places in pairs.items() if column.of_model for place in places]
    others = [place for column, places in pairs.items() if not column.of_model for place in places]
    of_items = paired_tests([_scores(place, averages) for place in others], test=comparison.table.test)
    found = {
        place: Difference(test.difference, (test.low, test.high)) for place, test in zip(others, of_items, strict=True)
    }
    for place, crossed in zip(models, of_models(models, cells, values), strict=True):
        ours, theirs = _scores(place, averages)
        of_all = Difference(float(np.mean(ours - theirs)), None)
        found[place] = Difference(crossed.difference, (crossed.low, crossed.high)) if crossed else of_all
    return found | {(base, row, key): difference.turned for (row, base, key), difference in found.items()}


def _scores(place: Place, averages: Sequence[Mapping[str, Vector]]) -> tuple[Vector, Vector]:
    row, base, key = place
    return averages[row][key], averages[base][key]


def pair_count(comparison: Comparison) -> int:
    """How many differences `pair_differences` has at most."""
    rows = len(comparison.finished)
    return rows * (rows - 1) * sum(column.scored for column in comparison.columns)
