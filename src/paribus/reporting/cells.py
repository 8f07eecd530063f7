"""The numbers of one cell: mean, spreads, and the tests of its difference from the row it is compared with."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from paribus.config.groups.experiment import TableConfig
from paribus.reporting.measures import Column, finite
from paribus.reporting.significance import (
    Matrix,
    PairedTest,
    Vector,
    detectable_effect,
    holm,
    paired_tests,
    standard_errors,
    unpaired_t_test,
)

Values = Mapping[int, Matrix]
"""By seed: shape (checkpoints, items)."""
Cells = dict[str, "Cell"]
"""By column key."""


@dataclass(frozen=True)
class Cell:
    """One number of the table. `value` is None where there is none, and NaN where a run produced NaN."""

    value: float | None = None
    """Mean over items, checkpoints and seeds; of a perplexity 2 to the power of that."""
    spread: float | None = None
    over: Literal["items", "seeds"] | None = None
    """`items`: standard error of the mean over items. `seeds`: standard deviation over the seeds' means."""
    checkpoint_spread: float | None = None
    """Standard deviation of the mean over the last checkpoints of a run; root of the mean variance of several seeds."""
    error: float | None = None
    """Standard error of the mean over items, each item's score averaged over checkpoints and seeds."""
    items: int = 0
    seeds: int = 0
    checkpoints: int = 0
    best: bool = False
    test: PairedTest | None = None
    """Over items, of a perplexity in bits; None for a baseline row and for what is not scored by item."""
    seeds_test: PairedTest | None = None
    """Over the seeds that both rows have, where there are two or more."""
    p_value: float | None = None
    """The larger p-value of the two tests: a difference should hold on other items and for other seeds."""
    p_holm: float | None = None
    """`p_value` adjusted over the table."""
    mde: float | None = None
    """The smallest true difference that these items, and these seeds, would show: 80 % power at a level of 5 %."""
    plain_p: float | None = None
    """Of the unpaired t-test over the means of each seed and checkpoint, where it is wanted."""


def item_averages(values: Sequence[Mapping[str, Values]]) -> list[dict[str, Vector]]:
    """Each item's score (items,), averaged over checkpoints and seeds, of every row and column that has any."""
    return [{key: _over_items(list(seeds.values())) for key, seeds in row.items() if seeds} for row in values]


def cells_of(values: Sequence[Mapping[str, Values]], averages: Sequence[Mapping[str, Vector]]) -> list[Cells]:
    """The cells of rows: by column key, from each seed's values; (1, 1) for a number of the whole run.

    `averages` are those of the items of the same values.
    """
    places = [(row, key) for row, found in enumerate(averages) for key in found]
    seeds = [list(values[row][key].values()) for row, key in places]
    means = [np.array([each.mean(axis=1) for each in found]) for found in seeds]
    errors = standard_errors([averages[row][key] for row, key in places])
    rows: list[Cells] = [{key: Cell() for key in by_column} for by_column in values]
    for alike in _by_shape(means):
        for index, spreads in zip(alike, _spreads(np.stack([means[index] for index in alike])), strict=True):
            row, key = places[index]
            rows[row][key] = _cell(*spreads, errors[index], seeds[index])
    return rows


def _by_shape(means: Sequence[Matrix]) -> list[list[int]]:
    groups: dict[tuple[int, ...], list[int]] = {}
    for index, found in enumerate(means):
        groups.setdefault(found.shape, []).append(index)
    return list(groups.values())


def _spreads(means: Matrix) -> list[tuple[float, float | None, float | None]]:
    """Mean, standard deviation over seeds and over checkpoints of each of (cells, seeds, checkpoints)."""
    cells, seeds, checkpoints = means.shape
    nothing: list[float | None] = [None] * cells
    with np.errstate(invalid="ignore"):  # of runs with infinite scores
        over_seeds = np.std(means.mean(axis=2), axis=1, ddof=1).tolist() if seeds > 1 else nothing
        steps = np.sqrt(np.mean(np.var(means, axis=2, ddof=1), axis=1)).tolist() if checkpoints > 1 else nothing
        return list(zip(means.reshape(cells, -1).mean(axis=1).tolist(), over_seeds, steps, strict=True))


def _cell(
    value: float, over_seeds: float | None, steps: float | None, error: float | None, seeds: Sequence[Matrix]
) -> Cell:
    checkpoints, items = seeds[0].shape
    counts = {"items": items, "seeds": len(seeds), "checkpoints": checkpoints}
    if not math.isfinite(value):
        return Cell(value=value, **counts)
    if over_seeds is not None:
        return Cell(value, over_seeds, "seeds", steps, error, **counts)
    return Cell(value, error, None if error is None else "items", steps, error, **counts)


def _over_items(seeds: Sequence[Matrix]) -> Vector:
    if len(seeds) == 1 and seeds[0].shape[0] == 1:
        return np.asarray(seeds[0][0])
    mean: Vector = np.mean([values.mean(axis=0) for values in seeds], axis=0)
    return mean


def tested(
    cells: Sequence[Mapping[str, Cell]],
    values: Sequence[Mapping[str, Values]],
    baselines: Sequence[int | None],
    columns: Sequence[Column],
    table: TableConfig,
    *,
    averages: Sequence[Mapping[str, Vector]],
) -> list[Cells]:
    """Each scored cell with its tests against its baseline's; p-values are adjusted by Holm over the table."""
    places = [
        (row, base, column.key)
        for row, base in enumerate(baselines)
        for column in columns
        if base is not None and _testable(column, cells[row][column.key], cells[base][column.key])
    ]
    items = paired_tests([(averages[row][key], averages[base][key]) for row, base, key in places], test=table.test)
    seeds = _by_seed([(values[row][key], values[base][key]) for row, base, key in places])
    p_values = [max(test.p_value for test in both if test) for both in zip(items, seeds, strict=True)]
    effects = _effects([test for test in (*items, *seeds) if test])
    found = [dict(row) for row in cells]
    for index, (row, base, key) in enumerate(places):
        found[row][key] = replace(
            found[row][key],
            test=items[index],
            seeds_test=seeds[index],
            p_value=p_values[index],
            mde=_detectable(items[index], seeds[index], effects),
            plain_p=unpaired_t_test(*(_samples(values[each][key]) for each in (row, base)))
            if table.plain_t_test
            else None,
        )
    for (row, _, key), p_holm in zip(places, holm(p_values), strict=True):
        found[row][key] = replace(found[row][key], p_holm=p_holm)
    return found


def shown(cells: Sequence[Mapping[str, Cell]], columns: Sequence[Column]) -> list[Cells]:
    """Cells of a perplexity with 2 to the power of their bits; its spreads are to first order (delta method).

    Tests, their intervals and what they could have found stay in bits.
    """
    perplexities = [column.key for column in columns if column.kind == "perplexity"]
    return [dict(row) | {key: _perplexity(row[key]) for key in perplexities} for row in cells]


def _perplexity(cell: Cell) -> Cell:
    if cell.value is None or not finite(cell.value):
        return cell
    value = 2.0**cell.value
    spread, steps, error = (
        None if bits is None else value * math.log(2) * bits
        for bits in (cell.spread, cell.checkpoint_spread, cell.error)
    )
    return replace(cell, value=value, spread=spread, checkpoint_spread=steps, error=error)


def with_best(
    cells: Sequence[Mapping[str, Cell]],
    labels: Sequence[tuple[str, ...]],
    columns: Sequence[Column],
    table: TableConfig,
) -> list[Cells]:
    """The best number of each column marked, in the table or in each group of rows; none where it is alone."""
    groups: dict[str, list[int]] = {}
    for place, row in enumerate(labels):
        groups.setdefault(row[0] if row and table.bold == "group" else "", []).append(place)
    found = [dict(row) for row in cells]
    for places in groups.values() if table.bold != "none" else ():
        for column in columns:
            values = [cells[place][column.key].value for place in places]
            known = [value for value in values if value is not None and finite(value)]
            if not column.better or len(known) < 2:
                continue
            best = max(known) if column.better == "higher" else min(known)
            for place in places:
                cell = found[place][column.key]
                found[place][column.key] = replace(cell, best=cell.value == best)
    return found


def _testable(column: Column, ours: Cell, theirs: Cell) -> bool:
    return column.scored and finite(ours.value) and finite(theirs.value)


def _by_seed(pairs: Sequence[tuple[Values, Values]]) -> list[PairedTest | None]:
    """Paired t-tests over the seeds that both have; None for fewer than two."""
    shared = [sorted(set(ours) & set(theirs)) for ours, theirs in pairs]
    enough = [place for place, seeds in enumerate(shared) if len(seeds) > 1]
    means = [tuple([float(side[seed].mean()) for seed in shared[place]] for side in pairs[place]) for place in enough]
    tests = dict(zip(enough, paired_tests([(ours, theirs) for ours, theirs in means], test="t"), strict=True))
    return [tests.get(place) for place in range(len(pairs))]


def _effects(tests: Sequence[PairedTest]) -> dict[int, float | None]:
    """The detectable effect in standard deviations, by number of samples."""
    return {count: detectable_effect(count) for count in sorted({test.items for test in tests})}


def _detectable(items: PairedTest, seeds: PairedTest | None, effects: Mapping[int, float | None]) -> float | None:
    """The larger of the differences that items and seeds could have shown; None where nothing varied."""
    found = [(test.deviation, effects[test.items]) for test in (items, seeds) if test and test.deviation > 0]
    return max((deviation * effect for deviation, effect in found if effect is not None), default=None)


def _samples(seeds: Values) -> Vector:
    """The mean of each seed and checkpoint, shape (seeds x checkpoints,)."""
    return np.concatenate([values.mean(axis=1) for values in seeds.values()])
