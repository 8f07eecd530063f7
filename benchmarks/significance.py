"""How often the test over seeds and items is wrong, on simulated tables.

python benchmarks/significance.py [--draws 10000] [--processes 2]

Tables of arms that do not differ, by number of rows and seeds and by the share of the difference's variance that seeds
bring; the share of p < 0.05 should be 5 %. Then tables in which seeds move one row three times as far as the others,
and the power at the detectable difference, which should be 80 %.
"""

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from paribus.reporting.significance.crossed import CrossedTest, crossed_tests, pooled_variance

SHARES = (0.0, 0.25, 0.5, 0.75, 0.95)
ITEMS, REST = 40, 0.3


@dataclass(frozen=True)
class World:
    """Tables whose first two rows differ by a variance of 1, a `share` of it from seeds."""

    rows: int
    seeds: int
    share: float
    wild: float = 1.0
    """How much further seeds move the second row than the others."""
    difference: float = 0.0

    def table(self, generator: np.random.Generator) -> NDArray[np.float64]:
        """(rows, seeds, items)."""
        of_items = (1 - self.share) * ITEMS / 2
        moved = np.full((self.rows, 1, 1), np.sqrt(self.share * self.seeds / (1 + self.wild**2)))
        moved[1] *= self.wild
        found = generator.normal(0, 2, (1, self.seeds, 1)) + generator.normal(0, 3, (1, 1, ITEMS))
        found = found + moved * generator.normal(size=(self.rows, self.seeds, 1))
        found = found + np.sqrt(of_items * (1 - REST)) * generator.normal(size=(self.rows, 1, ITEMS))
        found = found + np.sqrt(of_items * REST * self.seeds) * generator.normal(size=(self.rows, self.seeds, ITEMS))
        found[1] += self.difference
        return found

    def compared(self, generator: np.random.Generator) -> CrossedTest:
        """The second row against the first."""
        table = self.table(generator)
        return crossed_tests([(table[1], table[0])], [pooled_variance(table.mean(axis=2))])[0]


def positive(world: World, draws: int) -> float:
    """The share of tables with p < 0.05."""
    generator = np.random.default_rng(0)
    return float(np.mean([world.compared(generator).p_value < 0.05 for _ in range(draws)]))


def detectable(world: World, draws: int) -> float:
    """The median over tables of what the test calls detectable."""
    generator = np.random.default_rng(1)
    return float(np.median([world.compared(generator).detectable for _ in range(draws)]))


def named(world: World) -> str:
    """Rows and seeds."""
    return f"{world.rows} rows, {world.seeds} seeds"


def over_shares(rows: int, seeds: int, wild: float = 1.0) -> list[World]:
    """Worlds of all shares."""
    return [World(rows, seeds, share, wild) for share in SHARES]


def report(title: str, lines: Sequence[Sequence[World]], draws: int, pool: Executor) -> None:
    """A Markdown table: the share of p < 0.05 in %, worlds by line."""
    head = [f"| {title} | " + " | ".join(f"{share:g}" for share in SHARES) + " |", "|---" + "|--:" * len(SHARES) + "|"]
    sys.stdout.write("\n" + "\n".join(head) + "\n")
    for worlds in lines:
        found = pool.map(positive, worlds, [draws] * len(worlds))
        sys.stdout.write(f"| {named(worlds[0])} | " + " | ".join(f"{100 * share:.1f}" for share in found) + " |\n")
        sys.stdout.flush()


def main() -> None:
    """Write the tables as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=10_000)
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    with ProcessPoolExecutor(arguments.processes) as pool:
        equal = [over_shares(rows, seeds) for rows in (2, 4, 8) for seeds in (2, 3, 5, 10)]
        report("p < 0.05 in %, by the share of seeds", equal, arguments.draws, pool)
        wild = [over_shares(rows, seeds, 3.0) for rows in (2, 4, 8) for seeds in (3, 10)]
        report("the same, seeds move one row 3 times as far", wild, arguments.draws, pool)
        sized = [over_shares(rows, seeds) for rows in (2, 8) for seeds in (3, 5, 10)]
        shown = [
            [
                replace(world, difference=d)
                for world, d in zip(line, pool.map(detectable, line, [arguments.draws] * len(line)), strict=True)
            ]
            for line in sized
        ]
        report("power in % at the median detectable difference", shown, arguments.draws, pool)


if __name__ == "__main__":
    main()
