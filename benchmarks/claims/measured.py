"""Measurements of claims from stored runs, and from token statistics, which are made where they are missing."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from claims.claim import Claim, Measurement
from claims.resampled import Statistics, token_statistics
from paribus.checks import compose_command
from paribus.config.arguments import parse
from paribus.config.groups.evaluation import table_of
from paribus.pipeline.prepare import prepare_runs
from paribus.pipeline.results import collect
from paribus.pipeline.root import TOKENS, OutputRoot
from paribus.reporting.compare import Arm, Comparison, compare
from paribus.reporting.measures import SEEDS_TO_JUDGE
from paribus.reporting.significance import LEVEL
from paribus.store.provenance import source_of


class Store:
    """Measures claims by the runs and the token statistics below an output root."""

    def __init__(self, overrides: Mapping[str, Sequence[str]], root: str) -> None:
        """`overrides` of the command line by experiment; one that is not named has none."""
        self._overrides, self._root = overrides, root
        self._comparison = cache(self._compare)
        self._statistics = cache(self._count)

    def measure(self, claim: Claim) -> Measurement | None:
        """None where runs are missing or have fewer than three seeds, and for a claim without a number."""
        if not claim.number:
            return None
        if claim.experiment.startswith("findings/"):
            return self._trained(claim)
        return self._counted(claim)

    def _trained(self, claim: Claim) -> Measurement | None:
        comparison = self._comparison(claim.experiment, tuple(sorted(claim.against.items())))
        if comparison is None:
            return None
        for row in comparison.finished:
            labels = dict(zip(comparison.factors, row.labels, strict=True))
            if row.baseline is not None and all(labels.get(name) == label for name, label in claim.row.items()):
                return _in_table(claim, comparison, row, comparison.rows[row.baseline])
        return None

    def _counted(self, claim: Claim) -> Measurement | None:
        for labels, found in self._statistics(claim.experiment):
            if claim.number in found and all(labels.get(name) == label for name, label in claim.row.items()):
                return _scaled(found[claim.number], claim.scale)
        return None

    def _arguments(self, experiment: str) -> list[str]:
        return [f"experiment={experiment}", f"root={self._root}", *self._overrides.get(experiment, ())]

    def _compare(self, experiment: str, against: tuple[tuple[str, str], ...]) -> Comparison | None:
        """The table of an experiment; its rows are compared with those that have the labels `against`, if any."""
        composition = compose_command(parse(self._arguments(experiment), "report"))
        root = OutputRoot.of(composition.jobs[0].config)
        records, missing = collect(prepare_runs(composition, tolerate_missing=True), composition.factors, root)
        table = table_of(composition.jobs[0].config.experiment)
        if against:
            table = replace(table, baseline=dict(against))
        return compare(records, composition.factors, missing, table) if records else None

    def _count(self, experiment: str) -> Statistics:
        """Token statistics of each row."""
        return token_statistics(compose_command(parse(self._arguments(experiment), TOKENS)))


def _in_table(claim: Claim, comparison: Comparison, row: Arm, base: Arm) -> Measurement | None:
    """The difference of two rows in the column that a claim names; None with fewer than three seeds."""
    column = next((each for each in comparison.columns if each.key.startswith(claim.number)), None)
    if column is None or any(each.cells[column.key].seeds < SEEDS_TO_JUDGE for each in (row, base)):
        return None
    cell = row.cells[column.key]
    if cell.crossed is None or not cell.crossed.sufficient:
        return None
    test = replace(cell.crossed, level=LEVEL)  # by itself: the page adjusts over its own claims
    found = Measurement(
        test.difference,
        interval=(test.low, test.high),
        p_value=test.p_value,
        freedom=test.quantile.freedom,
        detectable=test.detectable,
        seeds=test.seeds,
        trained_by=", ".join(sorted({run.commit or "" for each in (row, base) for run in each.runs})),
    )
    return _scaled(found, column.factor * claim.scale)


def _scaled(found: Measurement, scale: float) -> Measurement:
    """In the unit of the page."""
    low, high = sorted(scale * bound for bound in found.interval or (0, 0))
    return replace(
        found,
        difference=scale * found.difference,
        interval=(low, high) if found.interval else None,
        detectable=None if found.detectable is None else abs(scale) * found.detectable,
        read_by=source_of(Path(__file__)) or "",
    )
