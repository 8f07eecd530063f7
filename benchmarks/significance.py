"""How often the test over seeds and items is wrong, on simulated tables judged as a report judges them.

python benchmarks/significance.py [--draws 10000] [--processes 2]

Tables of arms that do not differ, by number of rows and seeds and by the share of the difference's variance that seeds
bring; the share of p < 0.05 should be 5 %. Then tables in which seeds move one of the two rows that are compared
further than the others; the power at the detectable difference, which should be 80 %; tables whose effects are judged
together, in which any effect should be found in 5 %; and what is found where seeds are added until something shows.
"""

import argparse
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import repeat

import numpy as np
from numpy.typing import NDArray
from tables import table

from paribus.reporting.judgement import ArmScores
from paribus.reporting.significance import LEVEL, Estimate, judged_together

SHARES = (0.0, 0.25, 0.5, 0.75, 0.95)
FAMILY_SHARES = (0.0, 0.5, 0.95)
ITEMS, REST = 40, 0.3
LOOKS = (3, 5, 7, 10)
"""Seeds at which somebody looks who adds some until an effect shows."""
FAMILIES = {
    "two factors of two values": [
        {0: -0.5, 1: -0.5, 2: 0.5, 3: 0.5},
        {0: -0.5, 1: 0.5, 2: -0.5, 3: 0.5},
        {0: 1.0, 1: -1.0, 2: -1.0, 3: 1.0},
    ],
    "three values against a fourth": [{0: -1.0, row: 1.0} for row in (1, 2, 3)],
}
"""Effects that are judged together, by the weights of four rows."""


@dataclass(frozen=True)
class World:
    """Tables whose first two rows, which are compared, differ by a variance of 1, a `share` of it of seeds."""

    rows: int
    seeds: int
    share: float
    wild: float = 1.0
    """How much further seeds move the second row than the others."""
    difference: float = 0.0

    def table(self, generator: np.random.Generator) -> NDArray[np.float64]:
        """(rows, seeds, items)."""
        of_items = (1 - self.share) * ITEMS / 2
        moved = np.ones((self.rows, 1, 1))
        moved[1] *= self.wild
        moved *= np.sqrt(self.share * self.seeds / (1 + self.wild**2))
        found = generator.normal(0, 2, (1, self.seeds, 1)) + generator.normal(0, 3, (1, 1, ITEMS))
        found = found + moved * generator.normal(size=(self.rows, self.seeds, 1))
        found = found + np.sqrt(of_items * (1 - REST)) * generator.normal(size=(self.rows, 1, ITEMS))
        found = found + np.sqrt(of_items * REST * self.seeds) * generator.normal(size=(self.rows, self.seeds, ITEMS))
        found[1] += self.difference
        return found

    def tested(self, generator: np.random.Generator) -> Estimate:
        """The second row against the first, as a report tests them."""
        found = scores_of(self.table(generator)).test({1: 1.0, 0: -1.0})
        assert found is not None
        return found

    def any_effect(self, generator: np.random.Generator, family: str, looks: Sequence[int] = ()) -> bool:
        """True if any effect of a family is called one, at any of the numbers of seeds that are looked at."""
        table, weights = self.table(generator), FAMILIES[family]
        for seeds in looks or (self.seeds,):
            scores = scores_of(table[:, :seeds])
            tests = [test for each in weights if (test := scores.test(each))]
            # An adjusted p-value is none below its own.
            if min(test.p_value for test in tests) < LEVEL and any(
                adjusted < LEVEL for _, adjusted in judged_together(tests, weights, 1)
            ):
                return True
        return False


def scores_of(table: NDArray[np.float64]) -> ArmScores:
    """The scores of a table (rows, seeds, items)."""
    return ArmScores([{seed: scores[None] for seed, scores in enumerate(row)} for row in table])


def positive(world: World, draws: int) -> float:
    """The share of tables with p < 0.05."""
    generator = np.random.default_rng(0)
    return float(np.mean([world.tested(generator).p_value < 0.05 for _ in range(draws)]))


def any_positive(world: World, family: str, looks: Sequence[int], draws: int) -> float:
    """The share of tables in which any effect of a family is found."""
    generator = np.random.default_rng(0)
    return float(np.mean([world.any_effect(generator, family, looks) for _ in range(draws)]))


def detectable(world: World, draws: int) -> float:
    """The median over tables of what the test calls detectable."""
    generator = np.random.default_rng(1)
    return float(np.median([world.tested(generator).detectable for _ in range(draws)]))


def report(title: str, lines: Sequence[Sequence[World]], draws: int, pool: Executor) -> None:
    """A table: the share of p < 0.05, worlds by line."""
    rows = [
        [f"{worlds[0].rows} rows, {worlds[0].seeds} seeds", *in_percent(pool.map(positive, worlds, repeat(draws)))]
        for worlds in lines
    ]
    sys.stdout.write("\n" + table([title, *(f"{share:g}" for share in SHARES)], rows))


def report_families(draws: int, pool: Executor) -> None:
    """Tables: how often any effect of a family is found, as planned and where seeds are added."""
    seeds, looks = {f"{number} seeds": number for number in (3, 5, 10)}, f"looks at {', '.join(map(str, LOOKS))}"
    for title, wild, sizes, seen in (
        ("any of three effects in %", 1.0, seeds, ()),
        ("seeds move one row 3 times as far", 3.0, seeds, ()),
        ("seeds added until any shows", 1.0, {looks: LOOKS[-1]}, LOOKS),
    ):
        rows = []
        for name, number in sizes.items():
            worlds = [World(4, number, share, wild) for share in FAMILY_SHARES]
            for family in FAMILIES:
                found = pool.map(any_positive, worlds, repeat(family), repeat(seen), repeat(draws))
                rows.append([name, family, *in_percent(found)])
        sys.stdout.write("\n" + table([title, "effects", *(f"{share:g}" for share in FAMILY_SHARES)], rows))


def in_percent(shares: Iterable[float]) -> list[str]:
    """With one digit."""
    return [f"{100 * share:.1f}" for share in shares]


def main(draws: int, processes: int) -> None:
    """Write the tables as Markdown."""

    def worlds(rows: Sequence[int], seeds: Sequence[int], wild: float = 1.0) -> list[list[World]]:
        return [[World(r, s, share, wild) for share in SHARES] for r in rows for s in seeds]

    with ProcessPoolExecutor(processes) as pool:
        report("p < 0.05 in %, by the share of seeds", worlds((2, 4, 8), (2, 3, 5, 10)), draws, pool)
        for wild in (3.0, 10.0):
            title = f"seeds move one of the two {wild:g} times as far"
            report(title, worlds((2, 4, 8), (3, 5, 10), wild), draws, pool)
        shown = [
            [
                replace(world, difference=least)
                for world, least in zip(line, pool.map(detectable, line, repeat(draws)), strict=True)
            ]
            for line in worlds((2, 8), (3, 5, 10))
        ]
        report("power in % at the median detectable difference", shown, draws, pool)
        report_families(draws, pool)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=10_000)
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    main(given.draws, given.processes)
