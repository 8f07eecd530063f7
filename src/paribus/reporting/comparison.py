"""The comparison itself, as numbers: rows are combinations of factors, columns are measures, cells know their runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from paribus.errors import ConfigurationError
from paribus.reporting import fairness
from paribus.reporting.frame import MissingRun, RunRecord, Scores, load
from paribus.reporting.measures import Column, columns_of, measure
from paribus.reporting.significance import PairedTest, Vector, holm, paired_test, standard_error


@dataclass(frozen=True)
class Cell:
    """One number of the table. `value` is None where there is none, and NaN where a run produced NaN."""

    value: float | None = None
    spread: float | None = None
    over: Literal["items", "seeds"] | None = None
    """`items`: standard error of the mean over items. `seeds`: standard deviation over the seeds' means."""
    items: int = 0
    best: bool = False
    test: PairedTest | None = None
    """Over items against the first row; None for that row and for what is not scored by item."""
    seeds_test: PairedTest | None = None
    """Over the seeds that both rows have, where there are two or more."""
    p_holm: float | None = None
    """The larger p-value of the two tests, adjusted over the table."""


@dataclass(frozen=True)
class Row:
    """One combination of factors: its labels, its runs (one a seed) and its cells by column key."""

    labels: tuple[str, ...]
    runs: tuple[RunRecord, ...]
    cells: Mapping[str, Cell]
    missing: tuple[str, ...] = ()
    """Why runs that were asked for are not there."""


@dataclass(frozen=True)
class Comparison:
    """A table of numbers with the proof that it is fair and what a reader has to know."""

    factors: tuple[str, ...]
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    chance: Mapping[str, float]
    """Accuracy of guessing, by column key."""
    checkpoints: int
    proof: fairness.Proof
    scores: Mapping[str, Scores]
    """By run id."""

    @property
    def finished(self) -> tuple[Row, ...]:
        """Rows that have runs."""
        return tuple(row for row in self.rows if row.runs)


def compare(runs: Sequence[RunRecord], factors: Sequence[str], missing: Sequence[MissingRun] = ()) -> Comparison:
    """Build the table; the first row is the baseline of the tests.

    Rows are in the order in which labels first appear, grouped by the first factor, then the second, and so on.

    Raises:
        FairnessError: the runs differ in more than the factors and the seed.
        ConfigurationError: there are no runs, a label is missing, or a combination has a seed twice.
        DataError: scores are missing or malformed.
    """
    if not runs:
        raise ConfigurationError(
            "there is no finished run to report; `paribus status` says what has run and what failed"
        )
    scores = {run.run_id: load(run.scores) for run in runs if run.scores is not None}
    fairness.refuse(runs, factors, scores)
    groups = fairness.by_labels(runs, factors)
    _refuse_repeated_seeds(groups)
    columns = columns_of(list(scores.values()), [run.training for run in runs])
    rows = _ordered(_rows(groups, missing, factors))
    values = [{column.key: _measured(row, column, scores) for column in columns} for row in rows]
    cells = [{key: _cell(list(seeds.values())) for key, seeds in row.items()} for row in values]
    cells = _with_best(_with_tests(cells, values, columns), columns)
    rows = [replace(row, cells=by_column) for row, by_column in zip(rows, cells, strict=True)]
    return Comparison(
        factors=tuple(factors),
        columns=tuple(columns),
        rows=tuple(rows),
        chance=_chance(columns, list(scores.values())),
        checkpoints=max((score.checkpoints for score in scores.values()), default=0),
        proof=fairness.proof(runs, factors),
        scores=scores,
    )


def _rows(
    groups: Mapping[tuple[str, ...], Sequence[RunRecord]], missing: Sequence[MissingRun], factors: Sequence[str]
) -> list[Row]:
    reasons: dict[tuple[str, ...], list[str]] = {labels: [] for labels in groups}
    for run in missing:
        reasons.setdefault(tuple(run.factors.get(factor, "?") for factor in factors), []).append(run.reason)
    return [Row(labels, tuple(groups.get(labels, ())), {}, tuple(why)) for labels, why in reasons.items()]


def _measured(row: Row, column: Column, scores: Mapping[str, Scores]) -> dict[int, Vector]:
    """Values for a column by seed, without the runs that have none."""
    values = {run.seed: measure(column, run, scores.get(run.run_id)) for run in row.runs}
    return {seed: value for seed, value in values.items() if value is not None}


def _cell(present: Sequence[Vector]) -> Cell:
    """One cell from each seed's values, shape (items,); a measure of the whole run has one item and no spread."""
    if not present:
        return Cell()
    means = [float(value.mean()) for value in present]
    value, items = float(np.mean(means)), len(present[0])
    if not np.isfinite(value):
        return Cell(value=value, items=items)
    if len(present) > 1:
        return Cell(value, float(np.std(means, ddof=1)), "seeds", items)
    return Cell(value, standard_error(present[0]), "items" if items > 1 else None, items)


def _with_tests(
    cells: Sequence[Mapping[str, Cell]],
    values: Sequence[Mapping[str, Mapping[int, Vector]]],
    columns: Sequence[Column],
) -> list[dict[str, Cell]]:
    """Each scored cell against the first row's; p-values are adjusted by Holm over the table."""
    tested = [dict(row) for row in cells]
    for row, ours in zip(tested[1:], values[1:], strict=True):
        for column in columns:
            row[column.key] = _tested(row[column.key], ours[column.key], values[0][column.key], column)
    places = [(index, key) for index, row in enumerate(tested) for key, cell in row.items() if cell.test]
    adjusted = holm([_p_value(tested[index][key]) for index, key in places])
    for (index, key), p_value in zip(places, adjusted, strict=True):
        tested[index][key] = replace(tested[index][key], p_holm=p_value)
    return tested


def _tested(cell: Cell, ours: Mapping[int, Vector], first: Mapping[int, Vector], column: Column) -> Cell:
    """Item by item on means over seeds, and seed by seed on means over items where both have two seeds or more."""
    if not (column.scored and ours and first and np.isfinite([*ours.values(), *first.values()]).all()):
        return cell
    items = paired_test(np.mean(list(ours.values()), axis=0), np.mean(list(first.values()), axis=0))
    shared = sorted(set(ours) & set(first))
    if len(shared) < 2:
        return replace(cell, test=items)
    seeds = paired_test([ours[seed].mean() for seed in shared], [first[seed].mean() for seed in shared])
    return replace(cell, test=items, seeds_test=seeds)


def _p_value(cell: Cell) -> float:
    """A difference counts if it would hold on other items and for other seeds: the larger p-value of the two."""
    return max(test.p_value for test in (cell.test, cell.seeds_test) if test)


def _with_best(cells: Sequence[Mapping[str, Cell]], columns: Sequence[Column]) -> list[dict[str, Cell]]:
    best: dict[str, float] = {}
    for column in columns:
        values = [row[column.key].value for row in cells]
        finite = [value for value in values if value is not None and np.isfinite(value)]
        if column.better and len(finite) > 1:
            best[column.key] = max(finite) if column.better == "higher" else min(finite)

    def marked(key: str, cell: Cell) -> Cell:
        return replace(cell, best=key in best and cell.value == best[key])

    return [{key: marked(key, cell) for key, cell in row.items()} for row in cells]


def _ordered(rows: Sequence[Row]) -> list[Row]:
    width = len(rows[0].labels)
    seen = [list(dict.fromkeys(row.labels[index] for row in rows)) for index in range(width)]
    return sorted(rows, key=lambda row: [seen[index].index(row.labels[index]) for index in range(width)])


def _refuse_repeated_seeds(groups: Mapping[tuple[str, ...], Sequence[RunRecord]]) -> None:
    for labels, group in groups.items():
        seeds = [run.seed for run in group]
        for seed in sorted(set(seeds)):
            if seeds.count(seed) > 1:
                ids = ", ".join(run.run_id for run in group if run.seed == seed)
                raise ConfigurationError(f"{', '.join(labels)} with seed {seed} was given twice: runs {ids}")


def _chance(columns: Sequence[Column], scores: Sequence[Scores]) -> dict[str, float]:
    known = {task: level for score in scores for task, level in score.chance.items()}
    levels: dict[str, float] = {}
    for column in columns:
        if column.parts and all(part.task in known for part in column.parts):
            levels[column.key] = float(np.mean([known[part.task] for part in column.parts]))
    return levels
