"""What stored runs and statistics say of a claim; nothing is trained."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from statistics import fmean, stdev

from scipy.stats import t

from claims.claim import Claim, Found
from claims.detectable import detectable
from claims.own_tokens import OWN_UNIFORMITY, own_uniformities
from paribus.checks.command import compose_command
from paribus.commands.tokens.files import TOKENS
from paribus.config.arguments import parse
from paribus.config.groups.execution import EngineConfig
from paribus.config.groups.experiment import table_of
from paribus.errors import ParibusError
from paribus.pipeline.output_root import OutputRoot
from paribus.pipeline.prepare import prepare
from paribus.pipeline.record.records import collect
from paribus.pipeline.token_rows import count, token_rows
from paribus.reporting.significance.least import SEEDS_TO_JUDGE
from paribus.reporting.significance.quantile import TWO_SIDED
from paribus.reporting.table.cells import Cell
from paribus.reporting.table.comparison import Comparison, ComparisonRow, compare
from paribus.reporting.tokenizers.row import Number
from paribus.reporting.tokenizers.tables import all_numbers

Labelled = list[tuple[Mapping[str, str], Mapping[str, Number]]]


class Store:
    """Reads what was made below the root that the overrides of each experiment name."""

    def __init__(self, overrides: Mapping[str, Sequence[str]], root: str) -> None:
        """`overrides` by experiment; those of an experiment that it does not name are none."""
        self._overrides, self._root = overrides, root
        self._comparison = cache(self._compare)
        self._statistics = cache(self._count)

    def found(self, claim: Claim) -> Found | None:
        """What is there of a claim; None for runs that are not there."""
        if claim.experiment.startswith("findings/"):
            return self._trained(claim)
        return self._counted(claim)

    def _trained(self, claim: Claim) -> Found | None:
        comparison = self._comparison(claim.experiment, tuple(sorted(claim.against.items())))
        if comparison is None:
            return None
        for row in comparison.finished:
            labels = dict(zip(comparison.factors, row.labels, strict=True))
            base = None if row.baseline is None else comparison.rows[row.baseline]
            if base is None or any(labels.get(name) != label for name, label in claim.row.items()):
                continue
            if claim.number == OWN_UNIFORMITY:
                return _over_seeds(*own_uniformities(row.runs, base.runs, self._output_root))
            return _in_table(claim, comparison, row, base)
        return None

    def _counted(self, claim: Claim) -> Found | None:
        for labels, numbers in self._statistics(claim.experiment):
            if all(labels.get(name) == label for name, label in claim.row.items()):
                value = numbers.get(claim.number)
                return None if value is None else Found(claim.scale * float(value))
        return None

    def _arguments(self, experiment: str) -> list[str]:
        return [f"experiment={experiment}", f"root={self._root}", *self._overrides.get(experiment, ())]

    @property
    def _output_root(self) -> OutputRoot:
        return OutputRoot(Path(self._root), EngineConfig().lease_seconds)

    def _compare(self, experiment: str, against: tuple[tuple[str, str], ...]) -> Comparison | None:
        """The table of an experiment; its rows are compared with those that have the labels `against`, if any."""
        composition = compose_command(parse(self._arguments(experiment), "report"))
        runs = prepare(composition, tolerate_missing=True)
        records, missing = collect(runs, composition.factors, self._output_root)
        table = table_of(composition.jobs[0].config.experiment)
        if against:
            table = replace(table, baseline=dict(against))
        try:
            return compare(records, composition.factors, missing, table)
        except ParibusError:
            return None

    def _count(self, experiment: str) -> Labelled:
        """Numbers of each row, made where they are not there: counting takes no training."""
        composition = compose_command(parse(self._arguments(experiment), TOKENS))
        counted, failed = count(composition.jobs, TOKENS)
        if failed:
            raise failed[0][1]
        table = table_of(composition.jobs[0].config.experiment)
        rows, _ = token_rows(counted, composition.factors, table)
        labels = [dict(zip(composition.factors, row.labels, strict=True)) for row in rows]
        numbers = _with_differences(all_numbers(rows), [row.baseline for row in rows])
        return list(zip(labels, numbers, strict=True))


def _in_table(claim: Claim, comparison: Comparison, row: ComparisonRow, base: ComparisonRow) -> Found | None:
    """What a table has of a claim, with enough seeds to judge."""
    column = next((each for each in comparison.columns if each.key.startswith(claim.number)), None)
    if column is None:
        return None
    cells = row.cells[column.key], base.cells[column.key]
    if any(cell.seeds < SEEDS_TO_JUDGE for cell in cells):
        return None
    found = _judged(*cells)
    return None if found is None else _scaled(found, column.factor * claim.scale)


def _over_seeds(values: Sequence[float], base: Sequence[float]) -> Found | None:
    """The difference of the means of a number that each seed has one of."""
    if min(len(values), len(base)) < SEEDS_TO_JUDGE:
        return None
    (mean, spread), (before, others) = ((fmean(each), stdev(each)) for each in (values, base))
    return _welch(mean - before, [(spread, len(values)), (others, len(base))])


def _judged(cell: Cell, base: Cell) -> Found | None:
    """The difference of a cell over the seeds that both have; of what no item has, Welch's over the means of seeds."""
    if test := cell.crossed:
        return Found(test.difference, (test.low, test.high), test.seeds, test.detectable) if test.sufficient else None
    if cell.difference is not None:
        return None
    if cell.value is None or base.value is None or cell.seed_spread is None or base.seed_spread is None:
        return None
    spreads = [(each.seed_spread, each.seeds) for each in (cell, base) if each.seed_spread is not None]
    return _welch(cell.value - base.value, spreads)


def _welch(difference: float, spreads: Sequence[tuple[float, int]]) -> Found:
    """Welch's interval of the difference of two means, of their standard deviations over seeds and numbers of these."""
    variances = [(spread**2 / seeds, seeds) for spread, seeds in spreads]
    total, seeds = sum(variance for variance, _ in variances), spreads[0][1]
    if not total:
        return Found(difference, (difference, difference), seeds)
    freedom = total**2 / sum(variance**2 / (number - 1) for variance, number in variances)
    error = math.sqrt(total)
    half = float(t.ppf(TWO_SIDED, freedom)) * error
    return Found(difference, (difference - half, difference + half), seeds, detectable(error, freedom))


def _scaled(found: Found, scale: float) -> Found:
    """In the unit of the page."""
    low, high = sorted(scale * bound for bound in found.interval or ())
    least = None if found.detectable is None else abs(scale) * found.detectable
    return Found(scale * found.difference, (low, high), found.seeds, least)


def _with_differences(
    rows_numbers: Sequence[dict[str, Number]], bases: Sequence[int | None]
) -> list[dict[str, Number]]:
    """With the difference of each number from that of the row it is compared with, as `<name>_difference`."""
    found = []
    for numbers, base in zip(rows_numbers, bases, strict=True):
        before = {} if base is None else rows_numbers[base]
        differences: dict[str, Number] = {
            f"{name}_difference": float(value) - float(old)
            for name, value in numbers.items()
            if value is not None and (old := before.get(name)) is not None
        }
        found.append(numbers | differences)
    return found
