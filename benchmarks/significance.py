"""How often the test over seeds and items is wrong, on simulated tables judged as a report judges them.

python benchmarks/significance.py [--draws 10000] [--processes 2]

Tables of arms that do not differ, by number of rows and seeds and by the share of the difference's variance that seeds
bring; the share of p < 0.05 should be 5 %. Then tables in which seeds move one row further than the others, whether it
is one of the two that are compared or not; tables in which every row lacks a seed; tables whose effects are judged
together, in which any effect should be found in 5 %; what is found where seeds are added until something shows; the
power at the detectable difference, which should be 80 %; and how often the half width of a row's own number, of full
tables and of tables that lack runs, does not reach to the truth, which should be 5 %.
"""

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from paribus.reporting.judgement import ArmScores
from paribus.reporting.significance import LEVEL, Estimate, half_width, judged_together, within_rows

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
    """Tables whose compared rows, the first and the one called `compared`, differ by a variance of 1.

    A `share` of it is of seeds.
    """

    rows: int
    seeds: int
    share: float
    wild: float = 1.0
    """How much further seeds move the second row than the others."""
    compared: int = 1
    difference: float = 0.0
    lacking: bool = False
    """Whether every row lacks a seed, of which there is one more; the two compared lack the same."""

    def table(self, generator: np.random.Generator) -> NDArray[np.float64]:
        """(rows, seeds, items)."""
        seeds = self.seeds + self.lacking
        of_items = (1 - self.share) * ITEMS / 2
        moved = np.ones((self.rows, 1, 1))
        moved[1] *= self.wild
        moved *= np.sqrt(self.share * self.seeds / float(moved[0, 0, 0] ** 2 + moved[self.compared, 0, 0] ** 2))
        found = generator.normal(0, 2, (1, seeds, 1)) + generator.normal(0, 3, (1, 1, ITEMS))
        found = found + moved * generator.normal(size=(self.rows, seeds, 1))
        found = found + np.sqrt(of_items * (1 - REST)) * generator.normal(size=(self.rows, 1, ITEMS))
        found = found + np.sqrt(of_items * REST * self.seeds) * generator.normal(size=(self.rows, seeds, ITEMS))
        found[self.compared] += self.difference
        return found

    def tested(self, generator: np.random.Generator) -> Estimate:
        """The compared row against the first, as a report tests them."""
        found = self.scores(self.table(generator)).test({self.compared: 1.0, 0: -1.0})
        assert found is not None
        assert found.seeds == self.seeds
        return found

    def scores(self, table: NDArray[np.float64], seeds: int = 10**6) -> ArmScores:
        """The scores of a table, of its first seeds."""
        return ArmScores(
            [
                {seed: scores[None] for seed, scores in enumerate(row[:seeds]) if not self._lacks(place, seed)}
                for place, row in enumerate(table)
            ]
        )

    def any_effect(self, generator: np.random.Generator, family: str, looks: Sequence[int] = ()) -> bool:
        """True if any effect of a family is called one, at any of the numbers of seeds that are looked at."""
        table, weights = self.table(generator), FAMILIES[family]
        for seeds in looks or (self.seeds,):
            scores = self.scores(table, seeds)
            tests = [test for each in weights if (test := scores.test(each))]
            # An adjusted p-value is none below its own.
            if min(test.p_value for test in tests) < LEVEL and any(
                adjusted < LEVEL for _, adjusted in judged_together(tests, weights, 1)
            ):
                return True
        return False

    def _lacks(self, row: int, seed: int) -> bool:
        return self.lacking and seed == (0 if row == self.compared else row) % (self.seeds + 1)


@dataclass(frozen=True)
class Numbers:
    """Tables of one number a run around zero, to which seeds bring a variance of 1; a `share` of it is all rows'."""

    rows: int
    seeds: int
    share: float
    lacking: str
    """What is not there: "nothing", the last seed of "one row" or of "half the rows", another seed of "every row"."""

    def missed(self, draws: int) -> tuple[float, float]:
        """The share of tables whose first row's number is further from zero than its half width; the median of that."""
        generator = np.random.default_rng(2)
        found = []
        for _ in range(draws):
            means = np.sqrt(self.share) * generator.normal(size=self.seeds)
            means = means + np.sqrt(1 - self.share) * generator.normal(size=(self.rows, self.seeds))
            means[self._absent()] = np.nan
            own = means[0][np.isfinite(means[0])]
            half = half_width(own[:, None], within_rows(means))
            assert half is not None
            found.append((abs(own.mean()) > half, half))
        missed, halves = np.array(found).T
        return float(missed.mean()), float(np.median(halves))

    def _absent(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        several = {"nothing": 0, "one row": 1, "half the rows": self.rows // 2, "every row": self.rows}[self.lacking]
        rows = np.arange(self.rows - several, self.rows)
        return rows, rows % self.seeds if self.lacking == "every row" else np.full(several, self.seeds - 1)


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


def named(world: World) -> str:
    """Rows and seeds."""
    return f"{world.rows} rows, {world.seeds} seeds"


def over_shares(world: World) -> list[World]:
    """Worlds of all shares."""
    return [replace(world, share=share) for share in SHARES]


def report(title: str, lines: Sequence[Sequence[World]], draws: int, pool: Executor) -> None:
    """A Markdown table: the share of p < 0.05 in %, worlds by line."""
    head = [f"| {title} | " + " | ".join(f"{share:g}" for share in SHARES) + " |", "|---" + "|--:" * len(SHARES) + "|"]
    sys.stdout.write("\n" + "\n".join(head) + "\n")
    for worlds in lines:
        found = pool.map(positive, worlds, [draws] * len(worlds))
        sys.stdout.write(f"| {named(worlds[0])} | " + " | ".join(f"{100 * share:.1f}" for share in found) + " |\n")
        sys.stdout.flush()


def report_families(draws: int, pool: Executor) -> None:
    """Markdown tables: how often any effect of a family is found, as planned and where seeds are added."""
    cases: list[tuple[str, list[tuple[str, World, tuple[int, ...]]]]] = [
        ("any of three effects in %", [(f"{s} seeds", World(4, s, 0.0), ()) for s in (3, 5, 10)]),
        ("seeds move one row 3 times as far", [(f"{s} seeds", World(4, s, 0.0, wild=3.0), ()) for s in (3, 5, 10)]),
        ("seeds added until any shows", [(f"looks at {', '.join(map(str, LOOKS))}", World(4, 10, 0.0), LOOKS)]),
    ]
    for title, lines in cases:
        sys.stdout.write(f"\n| {title} | effects |" + "".join(f" {share:g} |" for share in FAMILY_SHARES))
        sys.stdout.write("\n|---|---" + "|--:" * len(FAMILY_SHARES) + "|\n")
        for name, world, looks in lines:
            for family in FAMILIES:
                worlds = [replace(world, share=share) for share in FAMILY_SHARES]
                given = ([each] * len(worlds) for each in (family, looks, draws))
                shares = pool.map(any_positive, worlds, *given)
                cells = " | ".join(f"{100 * share:.1f}" for share in shares)
                sys.stdout.write(f"| {name} | {family} | {cells} |\n")
                sys.stdout.flush()


def report_numbers(draws: int, pool: Executor) -> None:
    """A Markdown table: the share in % of numbers further from the truth than their half width, and its median."""
    sys.stdout.write("\n| a row's number: misses in %, and half width | lacking |")
    sys.stdout.write("".join(f" {share:g} |" for share in SHARES) + "\n|---|---" + "|--:" * len(SHARES) + "|\n")
    for rows, seeds in ((2, 3), (4, 3), (4, 5), (8, 3), (8, 5)):
        for lacking in ("nothing", "one row", "half the rows", "every row"):
            worlds = [Numbers(rows, seeds, share, lacking) for share in SHARES]
            cells = [
                f"{100 * share:.1f}, {half:.2f}"
                for share, half in pool.map(Numbers.missed, worlds, [draws] * len(worlds))
            ]
            sys.stdout.write(f"| {rows} rows, {seeds} seeds | {lacking} | " + " | ".join(cells) + " |\n")
            sys.stdout.flush()


def main() -> None:
    """Write the tables as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=10_000)
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()

    def worlds(rows: Sequence[int], seeds: Sequence[int], **more: float) -> list[list[World]]:
        return [over_shares(World(r, s, 0.0, **more)) for r in rows for s in seeds]  # type: ignore[arg-type]

    with ProcessPoolExecutor(arguments.processes) as pool:

        def show(title: str, lines: Sequence[Sequence[World]]) -> None:
            report(title, lines, arguments.draws, pool)

        show("p < 0.05 in %, by the share of seeds", worlds((2, 4, 8), (2, 3, 5, 10)))
        for wild in (3.0, 10.0):
            show(f"seeds move one of the two {wild:g} times as far", worlds((2, 4, 8), (3, 5, 10), wild=wild))
        show("seeds move a third row 10 times as far", worlds((4, 8), (3, 5, 10), wild=10.0, compared=2))
        show("every row lacks a seed", worlds((4, 8), (3, 5, 10), lacking=True))
        sized = worlds((2, 8), (3, 5, 10))
        shown = [
            [
                replace(world, difference=d)
                for world, d in zip(line, pool.map(detectable, line, [arguments.draws] * len(line)), strict=True)
            ]
            for line in sized
        ]
        show("power in % at the median detectable difference", shown)
        report_families(arguments.draws, pool)
        report_numbers(arguments.draws, pool)


if __name__ == "__main__":
    main()
