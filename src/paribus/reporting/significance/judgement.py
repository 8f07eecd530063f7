"""Tests of cells against their baselines, and the best cell of each column."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from paribus.config.groups.experiment import TableConfig
from paribus.reporting.significance.crossed import CrossedTest, SeedVariance, crossed_test, pooled_variance, steady
from paribus.reporting.significance.items import Matrix, Vector, paired_tests, unpaired_t_test
from paribus.reporting.significance.joint import Weights
from paribus.reporting.significance.least import ITEMS_TO_JUDGE, SEEDS_TO_JUDGE
from paribus.reporting.table.cells import Cell, Cells, Values, seed_means
from paribus.reporting.table.column import Column
from paribus.reporting.table.measures import finite


class ArmScores:
    """The scores of all arms in one measure, by row, and what seeds do to them."""

    def __init__(self, values: Sequence[Values], *, of_model: bool = True) -> None:
        self._values, self._of_model = values, of_model
        self._averages: dict[tuple[int, tuple[int, ...]], Matrix] = {}

    def test(self, weights: Weights) -> CrossedTest | None:
        """Test a contrast of arms over the seeds that all of them have; None for models with fewer than two.

        Of what no training has part in, it is over items alone, their scores averaged over seeds.
        """
        seeds = self.shared(weights)
        if len(seeds) < (2 if self._of_model else 1):
            return None
        scores = {row: self._by_seed(row, seeds) for row in weights}
        contrast: Matrix = np.sum([weight * scores[row] for row, weight in weights.items()], axis=0)
        scale = max(float(np.abs(each).max()) for each in scores.values())
        if not self._of_model:
            return crossed_test(contrast.mean(axis=0, keepdims=True), scale, None)
        pooled, rows = self._pooled
        known = pooled if pooled is not None and rows.issuperset(weights) else None
        return crossed_test(contrast, scale, known and known.times(sum(weight**2 for weight in weights.values())))

    def shared(self, rows: Iterable[int]) -> tuple[int, ...]:
        """The seeds that all of these rows have."""
        return tuple(sorted(set.intersection(*(set(self._values[row]) for row in rows))))

    @cached_property
    def _pooled(self) -> tuple[SeedVariance | None, set[int]]:
        """Variance between seeds pooled over the arms whose variance is alike, and the rows of these."""
        means = seed_means(self._values)
        kept = steady(means) if means.size else np.zeros(len(self._values), dtype=bool)
        return pooled_variance(means[kept]), set(np.flatnonzero(kept).tolist())

    def _by_seed(self, row: int, seeds: tuple[int, ...]) -> Matrix:
        """(seeds, items), averaged over checkpoints."""
        if (row, seeds) not in self._averages:
            self._averages[row, seeds] = np.stack([self._values[row][seed].mean(axis=0) for seed in seeds])
        return self._averages[row, seeds]


def scores_by_measure(values: Sequence[Mapping[str, Values]], columns: Iterable[Column]) -> dict[str, ArmScores]:
    """`ArmScores` of every scored column, by key."""
    return {
        column.key: ArmScores([row[column.key] for row in values], of_model=column.of_model)
        for column in columns
        if column.scored
    }


def tested(
    cells: Sequence[Mapping[str, Cell]],
    values: Sequence[Mapping[str, Values]],
    baselines: Sequence[int | None],
    columns: Sequence[Column],
    table: TableConfig,
    *,
    scores: Mapping[str, ArmScores],
    averages: Sequence[Mapping[str, Vector]],
) -> list[Cells]:
    """Each scored cell with its tests against its baseline's, by themselves."""
    places = [
        (row, base, column.key)
        for row, base in enumerate(baselines)
        for column in columns
        if base is not None and testable(column, cells[row][column.key], cells[base][column.key])
    ]
    items = paired_tests([(averages[row][key], averages[base][key]) for row, base, key in places], test=table.test)
    tested_cells = [without_inference(row, columns) for row in cells]
    for (row, base, key), test in zip(places, items, strict=True):
        plain = unpaired_t_test(*(_samples(values[each][key]) for each in (row, base))) if table.plain_t_test else None
        crossed = against(row, base, cells[row][key], cells[base][key], scores[key])
        tested_cells[row][key] = replace(tested_cells[row][key], test=test, plain_p=plain, crossed=crossed)
    return tested_cells


def against(row: int, base: int, ours: Cell, theirs: Cell, scores: ArmScores) -> CrossedTest | None:
    """Test of two rows, over seeds and items; None too for rows whose numbers have another ground.

    Where they go on from different checkpoints, seeds vary the continuation alone; where the tokenizer of one loses
    text, its model has less to predict.
    """
    return scores.test({row: 1.0, base: -1.0}) if ours.ground == theirs.ground else None


def too_few_items(column: Column, cell: Cell) -> bool:
    """True if a number is of so few items that it says nothing of others."""
    return column.scored and cell.value is not None and cell.fewest < ITEMS_TO_JUDGE


def testable(column: Column, ours: Cell, theirs: Cell) -> bool:
    """True if the numbers of two rows in a column may be compared: finite means of enough items."""
    judged = not (too_few_items(column, ours) or too_few_items(column, theirs))
    return column.scored and finite(ours.value) and finite(theirs.value) and judged


def most_seeds(row: Mapping[str, Cell], columns: Sequence[Column]) -> int | None:
    """The seeds of the score of models that has the most in a row; None for a row without such scores."""
    return max(
        (row[column.key].seeds for column in columns if column.scored and column.of_model and row[column.key].seeds),
        default=None,
    )


def unjudged(column: Column, cell: Cell) -> bool:
    """True if a difference of models is over fewer common seeds than a judgement takes."""
    seeds = cell.crossed.seeds if cell.crossed else 0
    return column.of_model and cell.test is not None and seeds < SEEDS_TO_JUDGE


def without_inference(row: Mapping[str, Cell], columns: Sequence[Column]) -> Cells:
    """The cells of a row, those of too few items, or seeds where training has a part, without an interval."""
    few = [
        column.key
        for column in columns
        if too_few_items(column, row[column.key])
        or (row[column.key].seeds < SEEDS_TO_JUDGE and (column.of_model or not column.scored))
    ]
    return dict(row) | {key: replace(row[key], half_width=None, over=None) for key in few}


def with_best(
    cells: Sequence[Mapping[str, Cell]],
    labels: Sequence[tuple[str, ...]],
    columns: Sequence[Column],
    table: TableConfig,
) -> list[Cells]:
    """The best number of each of `columns` marked, in the table or in each group of rows.

    None where it is alone, and none among scores of models with too few seeds to say which is better.
    """
    groups: dict[str, list[int]] = {}
    for place, row in enumerate(labels):
        groups.setdefault(row[0] if row and table.bold == "group" else "", []).append(place)
    marked = [dict(row) for row in cells]
    for places in groups.values() if table.bold != "none" else ():
        for column in columns:
            numbers = [cells[place][column.key] for place in places if finite(cells[place][column.key].value)]
            if not column.better or len(numbers) < 2 or not _enough(column, numbers):
                continue
            known = [cell.value for cell in numbers if cell.value is not None]
            best = max(known) if column.better == "higher" else min(known)
            for place in places:
                cell = marked[place][column.key]
                marked[place][column.key] = replace(cell, best=cell.value == best)
    return marked


def _enough(column: Column, cells: Sequence[Cell]) -> bool:
    if any(too_few_items(column, cell) or unjudged(column, cell) for cell in cells):
        return False
    enough = min(cell.seeds for cell in cells) >= SEEDS_TO_JUDGE and len({cell.ground for cell in cells}) == 1
    return not column.of_model or enough


def _samples(seeds: Values) -> Vector:
    """The mean of each seed and checkpoint, shape (seeds x checkpoints,)."""
    return np.concatenate([values.mean(axis=1) for values in seeds.values()])
