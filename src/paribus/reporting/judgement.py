"""Tests of rows against their baselines and of what each factor of a table does, and the best cell of each column.

The effect of a value against a reference is the mean, over every combination of the other factors that has both, of
the difference between the two rows. Values of a factor that are numbers are also compared with the next smaller one. An
interaction is the difference between the effects that one factor has at two values of another. All are contrasts of
rows, tested over seeds and items and judged together (`significance`). A row is also compared with its
baseline, unless judged effects cover both.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, combinations
from typing import Literal

import numpy as np

from paribus.config.groups.evaluation import TableConfig
from paribus.config.units import parse_count
from paribus.reporting.columns import Cell, Cells, Values, finite, item_averages, seed_means
from paribus.reporting.measures import ITEMS_TO_JUDGE, SEEDS_TO_JUDGE, Labels, Measure
from paribus.reporting.significance import (
    Estimate,
    Matrix,
    SeedVariance,
    Weights,
    crossed_test,
    judged_together,
    paired_test,
    pooled_variance,
    steady,
    unpaired_t_test,
)


class ArmScores:
    """The scores of all arms in one measure, by row, and what seeds do to them."""

    def __init__(self, values: Sequence[Values], *, of_model: bool = True) -> None:
        self._values, self._of_model = values, of_model

    def test(self, weights: Weights) -> Estimate | None:
        """Test a contrast of arms over the seeds that all of them have; None for models with fewer than two.

        Scores in which no training has a part are averaged over seeds and tested over items alone.
        """
        seeds = self.shared(weights)
        if len(seeds) < (2 if self._of_model else 1):
            return None
        # (seeds, items), averaged over checkpoints.
        scores = {row: np.stack([self._values[row][seed].mean(axis=0) for seed in seeds]) for row in weights}
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
        means = seed_means(self._values)
        pooled = steady(means) if means.size else np.zeros(len(self._values), dtype=bool)
        return pooled_variance(means[pooled]), set(np.flatnonzero(pooled).tolist())


def scores_by_measure(values: Sequence[Mapping[str, Values]], columns: Iterable[Measure]) -> dict[str, ArmScores]:
    """`ArmScores` of every scored column, by key."""
    return {
        column.key: ArmScores([row[column.key] for row in values], of_model=column.of_model)
        for column in columns
        if column.scored
    }


def with_tests(
    cells: Sequence[Mapping[str, Cell]],
    values: Sequence[Mapping[str, Values]],
    baselines: Sequence[int | None],
    columns: Sequence[Measure],
    table: TableConfig,
    *,
    scores: Mapping[str, ArmScores],
) -> list[Cells]:
    """Each scored cell with its tests against its baseline's, by themselves."""
    places = (
        (row, base, column.key)
        for row, base in enumerate(baselines)
        for column in columns
        if base is not None and testable(column, cells[row][column.key], cells[base][column.key])
    )
    tested_cells = [without_inference(row, columns) for row in cells]
    for row, base, key in places:
        test, plain = paired_test(*(item_averages(values[place][key]) for place in (row, base)), test=table.test), None
        if table.plain_t_test:  # over the means of each seed and checkpoint
            samples = ([each.mean(axis=1) for each in values[place][key].values()] for place in (row, base))
            plain = unpaired_t_test(*map(np.concatenate, samples))
        # Where two go on from different checkpoints, seeds vary the continuation alone; where the tokenizer of one
        # loses text, its model has less to predict.
        alike = cells[row][key].comparable_by == cells[base][key].comparable_by
        crossed = scores[key].test({row: 1.0, base: -1.0}) if alike else None
        tested_cells[row][key] = replace(tested_cells[row][key], test=test, plain_p=plain, crossed=crossed)
    return tested_cells


def too_few_items(column: Measure, cell: Cell) -> bool:
    """True if a number is of so few items that it says nothing of others."""
    return column.scored and cell.value is not None and cell.fewest < ITEMS_TO_JUDGE


def testable(column: Measure, ours: Cell, theirs: Cell) -> bool:
    """True if the numbers of two rows in a column may be compared: finite means of enough items."""
    judged = not (too_few_items(column, ours) or too_few_items(column, theirs))
    return column.scored and finite(ours.value) and finite(theirs.value) and judged


def most_seeds(row: Mapping[str, Cell], columns: Sequence[Measure]) -> int | None:
    """Largest number of seeds among the scores of models in a row; None for a row without such scores."""
    return max(
        (row[column.key].seeds for column in columns if column.scored and column.of_model and row[column.key].seeds),
        default=None,
    )


def unjudged(column: Measure, cell: Cell) -> bool:
    """True if a difference of models has fewer than `SEEDS_TO_JUDGE` common seeds."""
    seeds = cell.crossed.seeds if cell.crossed else 0
    return column.of_model and cell.test is not None and seeds < SEEDS_TO_JUDGE


def without_inference(row: Mapping[str, Cell], columns: Sequence[Measure]) -> Cells:
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
    columns: Sequence[Measure],
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
            if not column.better or len(numbers) < 2 or not _best_is_judged(column, numbers):
                continue
            known = [cell.value for cell in numbers if cell.value is not None]
            best = max(known) if column.better == "higher" else min(known)
            for place in places:
                cell = marked[place][column.key]
                marked[place][column.key] = replace(cell, best=cell.value == best)
    return marked


def _best_is_judged(column: Measure, cells: Sequence[Cell]) -> bool:
    if any(too_few_items(column, cell) or unjudged(column, cell) for cell in cells):
        return False
    enough = min(cell.seeds for cell in cells) >= SEEDS_TO_JUDGE and len({cell.comparable_by for cell in cells}) == 1
    return not column.of_model or enough


@dataclass(frozen=True)
class Contrast:
    """A mean of differences of rows: what `values` of `factors` do against `references`; of two in an interaction."""

    kind: Literal["factor", "interaction", "row"]
    factors: tuple[str, ...]
    values: Labels
    references: Labels
    pairs: tuple[tuple[int, int], ...]
    """Rows, each with its reference row."""
    differences: int
    """Number of differences that are averaged; of an interaction, of differences of two differences."""

    @property
    def weights(self) -> dict[int, float]:
        """Contrast weights by row."""
        weights: dict[int, float] = {}
        for pair in self.pairs:
            for row, sign in zip(pair, (1.0, -1.0), strict=True):
                weights[row] = weights.get(row, 0.0) + sign / self.differences
        return weights

    @property
    def named(self) -> tuple[Labels, Labels, Labels]:
        """Identity of the contrast within a table."""
        return self.factors, self.values, self.references


@dataclass(frozen=True)
class Effect:
    """One contrast in one measure."""

    contrast: Contrast
    column: str
    """Key of the measure."""
    asked: int
    """`differences` of the contrast if every row had its scores."""
    test: Estimate
    p_adjusted: float | None = None
    """Over all contrasts that decide; None with too few seeds to judge."""
    tests: int = 1
    """Number of contrasts that are judged together, in all measures that decide."""


def effects(
    labels: Sequence[Labels],
    references: Mapping[str, str],
    baselines: Sequence[int | None],
    columns: Sequence[Measure],
    cells: Sequence[Mapping[str, Cell]],
    *,
    scores: Mapping[str, ArmScores],
) -> list[Effect]:
    """Main effects, then interactions of two factors, on each of `columns`; all are judged together.

    Args:
        labels: of each row, a value a factor.
        references: by factor, in the order of the labels, the value that others are compared with.
        baselines: of each row, the row that it is compared with.
        columns: the measures that decide.
        cells: by row and key, which say what may be judged.
        scores: by key.
    """
    measures = [
        _effects_in_measure(
            column, labels, references, baselines, [row[column.key] for row in cells], scores=scores[column.key]
        )
        for column in columns
    ]
    judged = [[effect for effect in each if effect.test.sufficient] for each in measures]
    several, tests = sum(map(bool, judged)), sum(map(len, judged))
    every: list[Effect] = []
    for measure, sufficient in zip(measures, judged, strict=True):
        weights = [effect.contrast.weights for effect in sufficient]
        decided = iter(judged_together([effect.test for effect in sufficient], weights, several))
        for effect in measure:
            if effect.test.sufficient:
                test, p_adjusted = next(decided)
                every.append(replace(effect, test=test, p_adjusted=p_adjusted, tests=tests))
            else:
                every.append(effect)
    return every


def with_decisions(cells: Sequence[Cells], effects: Sequence[Effect], baselines: Sequence[int | None]) -> list[Cells]:
    """Copy the test and adjusted p-value of each effect into the cell that shows it; others have no interval."""
    decided = {(effect.column, frozenset(effect.contrast.weights.items())): effect for effect in effects}
    judged = {effect.column for effect in effects if effect.p_adjusted is not None}
    copies = [dict(row) for row in cells]
    for place, (row, base) in enumerate(zip(copies, baselines, strict=True)):
        if base is None:
            continue
        for key, cell in row.items():
            effect = decided.get((key, frozenset({(place, 1.0), (base, -1.0)})))
            if effect and cell.crossed:
                row[key] = replace(cell, crossed=effect.test, p_adjusted=effect.p_adjusted)
            elif key in judged:
                row[key] = replace(cell, of_factors=True)
    return copies


def _effects_in_measure(
    column: Measure,
    labels: Sequence[Labels],
    references: Mapping[str, str],
    baselines: Sequence[int | None],
    cells: Sequence[Cell],
    *,
    scores: ArmScores,
) -> list[Effect]:
    """Test the contrasts of factors in one measure, then rows against baselines where judged effects cover not both."""
    usable = _usable_rows(cells, column)
    every = {each.named: each.differences for each in _factor_contrasts(labels, references, range(len(labels)))}
    pairs = [(place, base) for place in usable if (base := baselines[place]) is not None and base in usable]
    factors = tuple(references)
    of_rows = [Contrast("row", factors, labels[place], labels[base], ((place, base),), 1) for place, base in pairs]
    tested: list[Effect] = []
    for contrasts in (_factor_contrasts(labels, references, usable), of_rows):
        judged = {row for effect in tested if effect.test.sufficient for row in effect.contrast.weights}
        for contrast in contrasts:
            used = _comparable(contrast, cells, scores)
            if used and not judged.issuperset(used.weights) and (test := scores.test(used.weights)):
                tested.append(Effect(used, column.key, every.get(contrast.named, 1), test))
    return tested


def _comparable(contrast: Contrast, cells: Sequence[Cell], scores: ArmScores) -> Contrast | None:
    """The contrast over its comparable differences, of these only those with enough common seeds if any has them."""
    size = len(contrast.pairs) // contrast.differences
    groups = [contrast.pairs[at : at + size] for at in range(0, len(contrast.pairs), size)]
    alike = [each for each in groups if all(cells[a].comparable_by == cells[b].comparable_by for a, b in each)]
    enough = [each for each in alike if all(len(scores.shared(pair)) >= SEEDS_TO_JUDGE for pair in each)]
    used = enough or alike
    return replace(contrast, pairs=tuple(chain(*used)), differences=len(used)) if used else None


def _usable_rows(cells: Sequence[Cell], column: Measure) -> list[int]:
    """Rows with a finite number of enough items and `SEEDS_TO_JUDGE` seeds, or as many as any row has.

    A row that failed, or that has fewer seeds, then takes no effect away from the others.
    """
    whole = [at for at, cell in enumerate(cells) if finite(cell.value) and not too_few_items(column, cell)]
    most = max((cells[at].seeds for at in whole), default=0)
    return [at for at in whole if not column.of_model or cells[at].seeds >= min(most, SEEDS_TO_JUDGE)]


def _factor_contrasts(labels: Sequence[Labels], references: Mapping[str, str], usable: Sequence[int]) -> list[Contrast]:
    factors, standard = tuple(references), tuple(references.values())
    places = {labels[place]: place for place in usable}
    return [*_main_effects(factors, places, standard), *_interactions(factors, places, standard)]


def _main_effects(factors: Labels, places: Mapping[Labels, int], references: Labels) -> Iterator[Contrast]:
    for at, (factor, reference) in enumerate(zip(factors, references, strict=True)):
        values = list(dict.fromkeys(label[at] for label in places))
        pairs = [(value, reference) for value in values if value != reference]
        pairs += [pair for pair in _next_smaller(values) if reference not in pair]
        for value, other in pairs:
            rows = tuple(
                (place, places[against])
                for label, place in places.items()
                if label[at] == value and (against := _with_values(label, {at: other})) in places
            )
            if rows:
                yield Contrast("factor", (factor,), (value,), (other,), rows, len(rows))


def _next_smaller(values: Sequence[str]) -> list[tuple[str, str]]:
    """Each value with the next smaller one, where all are numbers."""
    try:
        ordered = sorted(values, key=_parse_amount)
    except ValueError:
        return []
    return list(zip(ordered[1:], ordered[:-1], strict=True))


def _parse_amount(label: str) -> float:
    """A label such as `0.1`, `4096` or `64K`; ValueError for others."""
    try:
        return float(label)
    except ValueError:
        return parse_count(label)


def _interactions(factors: Labels, places: Mapping[Labels, int], references: Labels) -> Iterator[Contrast]:
    for first, second in combinations(range(len(factors)), 2):
        named, standard = (factors[first], factors[second]), (references[first], references[second])
        changes = ({first: standard[0]}, {first: standard[0], second: standard[1]}, {second: standard[1]})
        for value in dict.fromkeys(label[first] for label in places if label[first] != standard[0]):
            for other in dict.fromkeys(label[second] for label in places if label[second] != standard[1]):
                squares = [
                    [place, *(places.get(_with_values(label, change), -1) for change in changes)]
                    for label, place in places.items()
                    if label[first] == value and label[second] == other
                ]
                whole = [square for square in squares if min(square) >= 0]
                if whole:
                    pairs = tuple(pair for a, b, c, d in whole for pair in ((a, b), (c, d)))
                    yield Contrast("interaction", named, (value, other), standard, pairs, len(whole))


def _with_values(label: Labels, change: Mapping[int, str]) -> Labels:
    return tuple(change.get(at, value) for at, value in enumerate(label))
