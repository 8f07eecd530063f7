"""A null experiment: one arm under two names, whose table should show nothing.

The runs of an arm, one a seed, are put into two halves at random, and the second is tested against the first as a table
tests one row against another. The share of p < 0.05 should be about 5 %.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from paribus.config.groups.experiment import TableConfig
from paribus.errors import ConfigurationError
from paribus.reporting.notes.trainings import held_seeds
from paribus.reporting.significance.judgement import tested, too_few_items
from paribus.reporting.significance.least import ITEMS_TO_JUDGE, SEEDS_TO_JUDGE
from paribus.reporting.table.cells import Values, cells_of, item_averages
from paribus.reporting.table.column import Column
from paribus.reporting.table.comparison import Comparison, ComparisonRow
from paribus.reporting.table.layout import heading, size
from paribus.reporting.table.measures import measure

DRAWS = 1_000
FEWEST_RUNS = 2 * SEEDS_TO_JUDGE


@dataclass(frozen=True)
class NullResult:
    """What tests said of one measure of one arm under two names."""

    column: Column
    p_values: tuple[float, ...]
    differences: tuple[float, ...]

    def share_below(self, level: float) -> float:
        """Share of p-values below a level."""
        return float(np.mean(np.array(self.p_values) < level))

    def sentence(self) -> str:
        """The result in words."""
        largest = size(float(np.quantile(np.abs(self.differences), 0.95)), self.column)
        return (
            f"{heading(self.column)}: p < 0.05 in {self.share_below(0.05):.1%}, p < 0.01 in "
            f"{self.share_below(0.01):.1%}; 95 % of the differences are below {largest}"
        )


def null_experiment(comparison: Comparison, draws: int = DRAWS) -> list[str]:
    """Lines that say of each arm with six runs or more how often a table of its halves would find a difference.

    ConfigurationError where no arm has as many.
    """
    arms = [row for row in comparison.finished if len(row.runs) >= FEWEST_RUNS]
    if not arms:
        most = max((len(row.runs) for row in comparison.finished), default=0)
        raise ConfigurationError(
            f"a null experiment needs {FEWEST_RUNS} finished runs of one arm, {SEEDS_TO_JUDGE} for each half, and "
            f"there are {most}; run more seeds, for example seed=0,1,2,3,4,5,6,7,8,9"
        )
    lines = []
    for row in arms:
        count, half = len(row.runs), len(row.runs) // 2
        splits = math.comb(count, half) * math.comb(count - half, half) // 2
        lines.append(
            f"{comparison.row_name(row)}: {count} runs in two halves of {half} seeds at random, {draws:,} times, of "
            f"{splits:,} ways to halve them"
        )
        found = [f"  {result.sentence()}" for result in halves(row, comparison, draws)]
        lines += found or [f"  no score of the model is of {ITEMS_TO_JUDGE} items or documents, so nothing is tested"]
    few = [comparison.row_name(row) for row in comparison.finished if row not in arms]
    lines += held_seeds(comparison)
    return lines + ([f"With fewer than {FEWEST_RUNS} runs, and so left out: {'; '.join(few)}."] if few else [])


def halves(row: ComparisonRow, comparison: Comparison, draws: int) -> list[NullResult]:
    """What tests say of the runs of `row` in two halves, drawn anew each time, by measure that depends on the model."""
    cells = row.cells
    columns = [
        column
        for column in comparison.columns
        if column.scored and column.of_model and not too_few_items(column, cells[column.key])
    ]
    scores = comparison.scores
    runs = [run for run in row.runs if run.run_id in scores]
    every = {column.key: [measure(column, run.training, scores[run.run_id]) for run in runs] for column in columns}
    measured = {key: [value for value in values if value is not None] for key, values in every.items()}
    known = [column for column in columns if len(measured[column.key]) == len(runs)]
    found: dict[str, list[tuple[float, float]]] = {column.key: [] for column in known}
    for two in _drawn(len(runs), draws):
        values: list[dict[str, Values]] = [
            {key: {seed: measured[key][run] for seed, run in enumerate(half)} for key in found} for half in two
        ]
        for key, result in _tested(values, known, comparison.table).items():
            found[key].append(result)
    return [
        NullResult(column, tuple(p for p, _ in found[column.key]), tuple(d for _, d in found[column.key]))
        for column in known
        if found[column.key]
    ]


def _drawn(runs: int, draws: int) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
    """Two halves of so many runs, without what is over, in the sequence in which they are paired."""
    generator = np.random.default_rng(runs)
    for _ in range(draws):
        order = generator.permutation(runs).tolist()
        yield order[: runs // 2], order[runs // 2 : 2 * (runs // 2)]


def _tested(
    values: Sequence[Mapping[str, Values]], columns: Sequence[Column], table: TableConfig
) -> dict[str, tuple[float, float]]:
    """p-value and difference by column key."""
    averages = item_averages(values)
    cells = tested(
        cells_of(values, averages), values, [None, 0], columns, table, primary=frozenset(), averages=averages
    )
    return {
        key: (cell.p_value, cell.difference)
        for key, cell in cells[1].items()
        if cell.p_value is not None and cell.difference is not None
    }
