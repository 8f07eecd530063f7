"""What may be said of the differences between cells: tests against the baseline, Holm's adjustment, the best number."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from paribus.config.groups.experiment import TableConfig
from paribus.reporting.significance.crossed import CrossedTest, SeedVariance, crossed_tests, pooled_variance, steady
from paribus.reporting.significance.items import Matrix, Vector, holm, paired_tests, unpaired_t_test
from paribus.reporting.significance.least import ITEMS_TO_JUDGE, SEEDS_TO_JUDGE
from paribus.reporting.table.cells import Cell, Cells, Values, seed_means
from paribus.reporting.table.column import Column
from paribus.reporting.table.measures import finite


def tested(
    cells: Sequence[Mapping[str, Cell]],
    values: Sequence[Mapping[str, Values]],
    baselines: Sequence[int | None],
    columns: Sequence[Column],
    table: TableConfig,
    *,
    primary: frozenset[str],
    averages: Sequence[Mapping[str, Vector]],
) -> list[Cells]:
    """Each scored cell with its tests against its baseline's; those of `primary` columns are adjusted by Holm."""
    places = [
        (row, base, column.key)
        for row, base in enumerate(baselines)
        for column in columns
        if base is not None and testable(column, cells[row][column.key], cells[base][column.key])
    ]
    items = paired_tests([(averages[row][key], averages[base][key]) for row, base, key in places], test=table.test)
    seeds = of_models(places, cells, values)
    of_model = {column.key: column.of_model for column in columns}
    found = [without_inference(row, columns) for row in cells]
    for (row, base, key), test, crossed in zip(places, items, seeds, strict=True):
        plain = unpaired_t_test(*(_samples(values[each][key]) for each in (row, base))) if table.plain_t_test else None
        cell = replace(found[row][key], test=test, plain_p=plain)
        found[row][key] = _judged(cell, crossed) if of_model[key] else replace(cell, p_value=test.p_value)
    return _adjusted(found, [(row, key) for row, _, key in places if key in primary])


def of_models(
    places: Sequence[tuple[int, int, str]],
    cells: Sequence[Mapping[str, Cell]],
    values: Sequence[Mapping[str, Values]],
) -> list[CrossedTest | None]:
    """`over_seeds`; None too for rows whose numbers have another ground.

    Where they go on from different checkpoints, seeds vary the continuation alone; where the tokenizer of one loses
    text, its model has less to predict.
    """
    return [
        test if cells[row][key].ground == cells[base][key].ground else None
        for test, (row, base, key) in zip(over_seeds(places, values), places, strict=True)
    ]


def over_seeds(
    places: Sequence[tuple[int, int, str]], values: Sequence[Mapping[str, Values]]
) -> list[CrossedTest | None]:
    """Tests of two rows of `values` each in a column, (row, baseline, column), over the seeds that both have.

    What seeds do to a row is taken from all rows of `values`. None for fewer than two common seeds.
    """
    pools = {key: pooled_by_row([row[key] for row in values]) for key in dict.fromkeys(key for _, _, key in places)}
    shared = [tuple(sorted(values[row][key].keys() & values[base][key].keys())) for row, base, key in places]
    enough = [index for index, seeds in enumerate(shared) if len(seeds) > 1]
    sides = [
        ((row, key, shared[index]), (base, key, shared[index]))
        for index in enough
        for row, base, key in [places[index]]
    ]
    each = dict.fromkeys(side for both in sides for side in both)  # once, however many rows it is compared with
    scores = {(row, key, seeds): by_seed(values[row][key], seeds) for row, key, seeds in each}
    pairs = [(scores[ours], scores[theirs]) for ours, theirs in sides]
    pooled = [pools[key][row] and pools[key][base] for row, base, key in (places[index] for index in enough)]
    tests = crossed_tests(pairs, pooled)
    found = dict(zip(enough, tests, strict=True))
    return [found.get(index) for index in range(len(places))]


def too_few_items(column: Column, cell: Cell) -> bool:
    """Whether a number is of so few items that it says nothing of others."""
    return column.scored and cell.value is not None and cell.fewest < ITEMS_TO_JUDGE


def testable(column: Column, ours: Cell, theirs: Cell) -> bool:
    """Whether the numbers of two rows in a column may be compared: finite means of enough items."""
    judged = not (too_few_items(column, ours) or too_few_items(column, theirs))
    return column.scored and finite(ours.value) and finite(theirs.value) and judged


def most_seeds(row: Mapping[str, Cell], columns: Sequence[Column]) -> int | None:
    """The seeds of the score of models that has the most in a row; None for a row without such scores."""
    return max(
        (row[column.key].seeds for column in columns if column.scored and column.of_model and row[column.key].seeds),
        default=None,
    )


def unjudged(column: Column, cell: Cell) -> bool:
    """Whether a difference of models is over fewer common seeds than a judgement takes."""
    seeds = cell.crossed.seeds if cell.crossed else 0
    return column.of_model and cell.test is not None and seeds < SEEDS_TO_JUDGE


def without_inference(row: Mapping[str, Cell], columns: Sequence[Column]) -> Cells:
    """The cells of a row, those of too few items without an interval."""
    few = [column.key for column in columns if too_few_items(column, row[column.key])]
    return dict(row) | {key: replace(row[key], half_width=None, over=None) for key in few}


def with_best(
    cells: Sequence[Mapping[str, Cell]],
    labels: Sequence[tuple[str, ...]],
    columns: Sequence[Column],
    table: TableConfig,
) -> list[Cells]:
    """The best number of each column marked, in the table or in each group of rows.

    None where it is alone, and none among scores of models with too few seeds to say which is better.
    """
    groups: dict[str, list[int]] = {}
    for place, row in enumerate(labels):
        groups.setdefault(row[0] if row and table.bold == "group" else "", []).append(place)
    found = [dict(row) for row in cells]
    for places in groups.values() if table.bold != "none" else ():
        for column in columns:
            numbers = [cells[place][column.key] for place in places if finite(cells[place][column.key].value)]
            if not column.better or len(numbers) < 2 or not _enough(column, numbers):
                continue
            known = [cell.value for cell in numbers if cell.value is not None]
            best = max(known) if column.better == "higher" else min(known)
            for place in places:
                cell = found[place][column.key]
                found[place][column.key] = replace(cell, best=cell.value == best)
    return found


def pooled_by_row(rows: Sequence[Values]) -> list[SeedVariance | None]:
    """By row, what seeds do to single rows, from all that they move alike; None for the others."""
    means = seed_means(rows)
    if not means.size:
        return [None] * len(rows)
    kept = steady(means)
    pooled = pooled_variance(means[kept])
    return [pooled if each else None for each in kept]


def by_seed(found: Values, seeds: Sequence[int]) -> Matrix:
    """(seeds, items), averaged over checkpoints."""
    return np.stack([found[seed].mean(axis=0) for seed in seeds])


def _judged(cell: Cell, crossed: CrossedTest | None) -> Cell:
    if crossed is None:
        return cell
    enough = crossed.seeds >= SEEDS_TO_JUDGE and crossed.detectable > 0
    return replace(cell, crossed=crossed, p_value=crossed.p_value, mde=crossed.detectable if enough else None)


def _adjusted(cells: list[Cells], places: Sequence[tuple[int, str]]) -> list[Cells]:
    """With p-values by Holm over those of `places` that may be judged."""
    judged = [(row, key) for row, key in places if _may_be_judged(cells[row][key])]
    p_values = [cells[row][key].p_value for row, key in judged]
    for (row, key), p_holm in zip(judged, holm([p for p in p_values if p is not None]), strict=True):
        cells[row][key] = replace(cells[row][key], p_holm=p_holm)
    return cells


def _enough(column: Column, cells: Sequence[Cell]) -> bool:
    if any(too_few_items(column, cell) or unjudged(column, cell) for cell in cells):
        return False
    enough = min(cell.seeds for cell in cells) >= SEEDS_TO_JUDGE and len({cell.ground for cell in cells}) == 1
    return not column.of_model or enough


def _may_be_judged(cell: Cell) -> bool:
    return cell.p_value is not None and (cell.crossed is None or cell.crossed.seeds >= SEEDS_TO_JUDGE)


def _samples(seeds: Values) -> Vector:
    """The mean of each seed and checkpoint, shape (seeds x checkpoints,)."""
    return np.concatenate([values.mean(axis=1) for values in seeds.values()])
