"""What each factor of a table does, over all that the others are: main effects, and how two depend on each other.

The effect of a value against a reference is the mean, over every combination of the other factors that has both, of
the difference between the two rows. Values of a factor that are numbers are also compared with the next smaller one. An
interaction is the difference between the effects that one factor has at two values of another. All are contrasts of
rows, tested over seeds and items (`significance/crossed.py`) and judged together (`significance/joint.py`). Rows that
differ from no other in one factor alone are compared with their baselines instead.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations
from typing import Literal

from paribus.config.units import parse_count
from paribus.reporting.significance.crossed import CrossedTest
from paribus.reporting.significance.joint import judged_together
from paribus.reporting.significance.judgement import ArmScores, too_few_items
from paribus.reporting.significance.least import SEEDS_TO_JUDGE
from paribus.reporting.table.cells import Cell, Cells
from paribus.reporting.table.column import Column
from paribus.reporting.table.measures import finite

Labels = tuple[str, ...]


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
        found: dict[int, float] = {}
        for pair in self.pairs:
            for row, sign in zip(pair, (1.0, -1.0), strict=True):
                found[row] = found.get(row, 0.0) + sign / self.differences
        return found

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
    test: CrossedTest
    p_adjusted: float | None = None
    """Over all contrasts that decide; None with too few seeds to judge."""
    tests: int = 1
    """Number of contrasts that are judged together, in all measures that decide."""


def effects(
    labels: Sequence[Labels],
    references: Mapping[str, str],
    baselines: Sequence[int | None],
    columns: Sequence[Column],
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
        _tested(column, labels, references, baselines, [row[column.key] for row in cells], scores=scores[column.key])
        for column in columns
    ]
    judged = [[effect for effect in each if effect.test.sufficient] for each in measures]
    several, tests = sum(map(bool, judged)), sum(map(len, judged))
    found = list[Effect]()
    for every_effect, sufficient in zip(measures, judged, strict=True):
        weights = [effect.contrast.weights for effect in sufficient]
        decided = iter(judged_together([effect.test for effect in sufficient], weights, several))
        for effect in every_effect:
            if effect.test.sufficient:
                test, p_adjusted = next(decided)
                found.append(replace(effect, test=test, p_adjusted=p_adjusted, tests=tests))
            else:
                found.append(effect)
    return found


def with_decisions(cells: Sequence[Cells], effects: Sequence[Effect], baselines: Sequence[int | None]) -> list[Cells]:
    """Copy the test and adjusted p-value of each effect into the cell that shows it; others have no interval."""
    decided = {(effect.column, frozenset(effect.contrast.weights.items())): effect for effect in effects}
    judged = {effect.column for effect in effects if effect.p_adjusted is not None}
    found = [dict(row) for row in cells]
    for place, (row, base) in enumerate(zip(found, baselines, strict=True)):
        if base is None:
            continue
        for key, cell in row.items():
            effect = decided.get((key, frozenset({place: 1.0, base: -1.0}.items())))
            if effect and cell.crossed:
                row[key] = replace(cell, crossed=effect.test, p_adjusted=effect.p_adjusted)
            elif key in judged:
                row[key] = replace(cell, of_factors=True)
    return found


def _tested(
    column: Column,
    labels: Sequence[Labels],
    references: Mapping[str, str],
    baselines: Sequence[int | None],
    cells: Sequence[Cell],
    *,
    scores: ArmScores,
) -> list[Effect]:
    """Test the contrasts of factors in one measure, then those of rows that no contrast of factors covers."""
    usable = _usable(cells, column)
    every = {contrast.named: contrast.differences for contrast in _of_factors(labels, references, range(len(labels)))}
    tested: list[Effect] = []
    for contrasts in (_of_factors(labels, references, usable), _of_rows(labels, references, baselines, usable)):
        said = {row for effect in tested if effect.test.sufficient for row in effect.contrast.weights}
        for contrast in contrasts:
            used = _comparable(contrast, cells, scores)
            if used and not said.issuperset(used.weights) and (test := scores.test(used.weights)):
                tested.append(Effect(used, column.key, every.get(contrast.named, 1), test))
    return tested


def _comparable(contrast: Contrast, cells: Sequence[Cell], scores: ArmScores) -> Contrast | None:
    """The contrast of its differences of rows that have one ground and, where any has, enough seeds in common."""
    size = len(contrast.pairs) // contrast.differences
    groups = [contrast.pairs[at : at + size] for at in range(0, len(contrast.pairs), size)]
    alike = [each for each in groups if all(cells[row].ground == cells[base].ground for row, base in each)]
    enough = [each for each in alike if all(len(scores.shared(pair)) >= SEEDS_TO_JUDGE for pair in each)]
    kept = enough or alike
    return replace(contrast, pairs=tuple(chain(*kept)), differences=len(kept)) if kept else None


def _usable(cells: Sequence[Cell], column: Column) -> list[int]:
    """Rows with a number of enough items and as many seeds as a judgement takes; of two where no row has more.

    A row that failed, or that has fewer seeds, then takes no effect away from the others.
    """
    whole = [at for at, cell in enumerate(cells) if finite(cell.value) and not too_few_items(column, cell)]
    most = max((cells[at].seeds for at in whole), default=0)
    return [at for at in whole if not column.of_model or cells[at].seeds >= min(most, SEEDS_TO_JUDGE)]


def _of_factors(labels: Sequence[Labels], references: Mapping[str, str], usable: Sequence[int]) -> list[Contrast]:
    factors, standard = tuple(references), tuple(references.values())
    places = {labels[place]: place for place in usable}
    return [*_main(factors, places, standard), *_interactions(factors, places, standard)]


def _of_rows(
    labels: Sequence[Labels], references: Mapping[str, str], baselines: Sequence[int | None], usable: Sequence[int]
) -> list[Contrast]:
    pairs = [(place, base) for place in usable if (base := baselines[place]) is not None and base in usable]
    factors = tuple(references)
    return [Contrast("row", factors, labels[place], labels[base], ((place, base),), 1) for place, base in pairs]


def _main(factors: Labels, places: Mapping[Labels, int], references: Labels) -> Iterator[Contrast]:
    for at, (factor, reference) in enumerate(zip(factors, references, strict=True)):
        values = list(dict.fromkeys(label[at] for label in places))
        pairs = [(value, reference) for value in values if value != reference]
        pairs += [pair for pair in _neighbours(values) if reference not in pair]
        for value, other in pairs:
            rows = tuple(
                (place, places[against])
                for label, place in places.items()
                if label[at] == value and (against := _with(label, {at: other})) in places
            )
            if rows:
                yield Contrast("factor", (factor,), (value,), (other,), rows, len(rows))


def _neighbours(values: Sequence[str]) -> list[tuple[str, str]]:
    """Each value with the next smaller one, where all are numbers."""
    try:
        ordered = sorted(values, key=_amount)
    except ValueError:
        return []
    return list(zip(ordered[1:], ordered[:-1], strict=True))


def _amount(label: str) -> float:
    """A label such as `0.1`, `4096` or `64K`; ValueError for others."""
    try:
        return float(label)
    except ValueError:
        return parse_count(label)


def _interactions(factors: Labels, places: Mapping[Labels, int], references: Labels) -> Iterator[Contrast]:
    for one, two in combinations(range(len(factors)), 2):
        for value in dict.fromkeys(label[one] for label in places if label[one] != references[one]):
            for other in dict.fromkeys(label[two] for label in places if label[two] != references[two]):
                named = (factors[one], factors[two]), (value, other), (references[one], references[two])
                squares = [
                    (
                        place,
                        places.get(_with(label, {one: references[one]}), -1),
                        places.get(_with(label, {one: references[one], two: references[two]}), -1),
                        places.get(_with(label, {two: references[two]}), -1),
                    )
                    for label, place in places.items()
                    if label[one] == value and label[two] == other
                ]
                whole = [square for square in squares if min(square) >= 0]
                if whole:
                    pairs = tuple(pair for square in whole for pair in (square[:2], square[2:]))
                    yield Contrast("interaction", *named, pairs, len(whole))


def _with(label: Labels, change: Mapping[int, str]) -> Labels:
    return tuple(change.get(at, value) for at, value in enumerate(label))
