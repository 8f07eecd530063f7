"""What each factor of a table does, over all that the others are: main effects, and how two depend on each other.

The effect of a value against a reference is the mean, over every combination of the other factors that has both, of the
difference between the two rows. An interaction is the difference between the effects that one factor has at two values
of another. Both are contrasts of rows: one mean of rows less another, tested as two rows are, over seeds and items
(`significance/crossed.py`). What a seed does to one row and not to the others is taken as independent between rows, so
that a mean of k rows has a k-th of its variance.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from paribus.reporting.significance.crossed import LEVEL, CrossedTest, SeedVariance, crossed_tests
from paribus.reporting.significance.items import Matrix, holm
from paribus.reporting.significance.judgement import by_seed, pooled_by_row, too_few_items
from paribus.reporting.significance.least import SEEDS_TO_JUDGE
from paribus.reporting.significance.quantile import Quantile
from paribus.reporting.table.cells import Cell, Values
from paribus.reporting.table.column import Column
from paribus.reporting.table.measures import finite

MOST_EFFECTS = 60
"""Contrasts of one measure; of more values than that a table says enough by its rows."""
MOST_SEEDS = 1_000
Labels = tuple[str, ...]


@dataclass(frozen=True)
class Effect:
    """One contrast in one measure; `values` and `references` are of `factors`, of which an interaction has two."""

    factors: tuple[str, ...]
    values: tuple[str, ...]
    references: tuple[str, ...]
    column: str
    """Key of the measure."""
    rows: int
    """Differences of rows that it is the mean of."""
    asked: int
    """As many as the table would have, had every row its scores."""
    test: CrossedTest
    p_holm: float | None = None
    """Adjusted over all effects on measures that decide; None with too few seeds to judge."""
    tests: int = 1
    """Of how many it is one."""

    @property
    def is_interaction(self) -> bool:
        """Whether it says how one factor's effect depends on another."""
        return len(self.factors) > 1

    def seeds_needed(self) -> int | None:
        """Seeds a row with which a true effect of the size that was found would be shown with a probability of 80 %.

        By the parts of its variance: more seeds make that of seeds smaller and surer, and that of items not. None
        where the items alone hide it, or where it takes more than a thousand.
        """
        test, wanted = self.test, abs(self.test.difference)
        if not test.error or not wanted or self._detectable(MOST_SEEDS) > wanted:
            return None
        low, high = test.seeds, MOST_SEEDS
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._detectable(middle) <= wanted else (middle, high)
        return high

    def _detectable(self, seeds: int) -> float:
        """The smallest true effect that so many seeds would show, on the same items."""
        test, quantile = self.test, self.test.quantile
        fewer = test.seeds / seeds
        unit = (1 - quantile.share) + quantile.share * fewer
        then = Quantile(
            quantile.share * fewer / unit,
            quantile.seeds_freedom * (seeds - 1) / (test.seeds - 1),
            quantile.items_freedom,
            seeds=quantile.seeds * fewer / unit,
            rest=quantile.rest * fewer / unit,
        )
        return then.detectable(LEVEL / self.tests) * test.error * float(np.sqrt(unit))


def effects(
    labels: Sequence[Labels],
    references: Mapping[str, str],
    columns: Sequence[Column],
    cells: Sequence[Mapping[str, Cell]],
    values: Sequence[Mapping[str, Values]],
) -> list[Effect]:
    """Main effects, then interactions of two factors, on each of `columns`; adjusted by Holm over all of them.

    Args:
        labels: of each row, a value a factor.
        references: by factor, in the order of the labels, the value that others are compared with.
        cells: by row and key, which say what may be judged.
        values: by row, key and seed: shape (checkpoints, items).
    """
    factors, standard = tuple(references), tuple(references.values())
    found = list[Effect]()
    for column in (column for column in columns if column.of_model):
        scores = [row[column.key] for row in values]
        usable = _usable([row[column.key] for row in cells], scores, column)
        places = {label: place for place, label in enumerate(labels) if place in usable}
        contrasts = [*_main(factors, places, standard), *_interactions(factors, places, standard)][:MOST_EFFECTS]
        asked = _asked_for(labels, factors, standard)
        found += _tested(contrasts, column, [row[column.key] for row in cells], scores, asked)
    judged = [effect for effect in found if effect.test.seeds >= SEEDS_TO_JUDGE]
    adjusted = iter(holm([effect.test.p_value for effect in judged]))
    return [
        replace(effect, p_holm=next(adjusted), tests=len(judged)) if effect.test.seeds >= SEEDS_TO_JUDGE else effect
        for effect in found
    ]


@dataclass(frozen=True)
class _Contrast:
    """Sums of rows, by place: each of `ours` against each of `theirs`."""

    factors: tuple[str, ...]
    values: tuple[str, ...]
    references: tuple[str, ...]
    ours: tuple[int, ...]
    theirs: tuple[int, ...]
    scale: float
    """What the sums are multiplied with, to be a mean of differences."""


def _usable(cells: Sequence[Cell], scores: Sequence[Values], column: Column) -> set[int]:
    """Rows with a number of enough items and as many seeds as a judgement takes; of two where no row has more.

    A row that failed, or that has fewer seeds, then takes no effect away from the others.
    """
    whole = [at for at, cell in enumerate(cells) if finite(cell.value) and not too_few_items(column, cell)]
    most = max((len(scores[at]) for at in whole), default=0)
    return {at for at in whole if len(scores[at]) >= min(most, SEEDS_TO_JUDGE)}


def _asked_for(labels: Sequence[Labels], factors: Sequence[str], references: Labels) -> dict[Labels, int]:
    """By values of a contrast, the differences that all rows together would have."""
    places = {label: place for place, label in enumerate(labels)}
    every = [*_main(factors, places, references), *_interactions(factors, places, references)]
    return {(*each.factors, *each.values): round(1 / each.scale) for each in every}


def _main(factors: Sequence[str], places: Mapping[Labels, int], references: Labels) -> Iterator[_Contrast]:
    for at, (factor, reference) in enumerate(zip(factors, references, strict=True)):
        for value in dict.fromkeys(label[at] for label in places):
            pairs = [
                (place, places[other])
                for label, place in places.items()
                if label[at] == value and (other := _with(label, {at: reference})) in places
            ]
            if value != reference and pairs:
                ours, theirs = zip(*pairs, strict=True)
                yield _Contrast((factor,), (value,), (reference,), ours, theirs, 1 / len(pairs))


def _interactions(factors: Sequence[str], places: Mapping[Labels, int], references: Labels) -> Iterator[_Contrast]:
    for one, two in combinations(range(len(factors)), 2):
        for value in dict.fromkeys(label[one] for label in places if label[one] != references[one]):
            for other in dict.fromkeys(label[two] for label in places if label[two] != references[two]):
                squares = [
                    (
                        place,
                        places.get(_with(label, {one: references[one], two: references[two]}), -1),
                        places.get(_with(label, {one: references[one]}), -1),
                        places.get(_with(label, {two: references[two]}), -1),
                    )
                    for label, place in places.items()
                    if label[one] == value and label[two] == other
                ]
                whole = [square for square in squares if min(square) >= 0]
                if whole:
                    ours = tuple(place for square in whole for place in square[:2])
                    theirs = tuple(place for square in whole for place in square[2:])
                    names = (factors[one], factors[two])
                    yield _Contrast(
                        names, (value, other), (references[one], references[two]), ours, theirs, 1 / len(whole)
                    )


def _with(label: Labels, change: Mapping[int, str]) -> Labels:
    return tuple(change.get(at, value) for at, value in enumerate(label))


def _tested(
    contrasts: Sequence[_Contrast],
    column: Column,
    cells: Sequence[Cell],
    values: Sequence[Values],
    asked: Mapping[Labels, int],
) -> Iterator[Effect]:
    """The contrasts whose rows have two seeds or more in common and the same ground."""
    pools = pooled_by_row(values)
    for contrast in contrasts:
        places = [*contrast.ours, *contrast.theirs]
        seeds = sorted(set.intersection(*(set(values[place]) for place in places)))
        if len(seeds) < 2 or len({cells[place].ground for place in places}) > 1:
            continue
        (test,) = crossed_tests([_sums(values, contrast, seeds)], [_pooled(pools, contrast)])
        named = contrast.factors, contrast.values, contrast.references
        wanted = asked[*contrast.factors, *contrast.values]
        yield Effect(*named, column.key, round(1 / contrast.scale), wanted, test)


def _sums(values: Sequence[Values], contrast: _Contrast, seeds: Sequence[int]) -> tuple[Matrix, Matrix]:
    """Two arrays (seeds, items), whose mean difference is the contrast."""
    ours, theirs = (
        np.sum([by_seed(values[place], seeds) for place in side], axis=0) * contrast.scale
        for side in (contrast.ours, contrast.theirs)
    )
    return ours, theirs


def _pooled(pools: Sequence[SeedVariance | None], contrast: _Contrast) -> SeedVariance | None:
    """What seeds do to each of the two sums; None with a row that they move far beyond the others."""
    found = [pools[place] for place in (*contrast.ours, *contrast.theirs)]
    if any(each is None for each in found) or found[0] is None:
        return None
    return SeedVariance(found[0].variance * len(contrast.ours) * contrast.scale**2, found[0].freedom)
