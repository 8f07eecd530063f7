"""How often the test over seeds and items is wrong, on simulated tables judged as a report judges them.

python benchmarks/significance.py [--draws 10000] [--processes 2]

Tables of arms that do not differ, by number of rows and seeds and by the share of the difference's variance that seeds
bring; the share of p < 0.05 should be 5 %. Then tables in which seeds move one row further than the others, whether it
is one of the two that are compared or not; tables in which every row lacks a seed; and the power at the detectable
difference, which should be 80 %.
"""

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from paribus.reporting.significance.crossed import CrossedTest
from paribus.reporting.significance.judgement import over_seeds

SHARES = (0.0, 0.25, 0.5, 0.75, 0.95)
ITEMS, REST = 40, 0.3
SCORE = "score"


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

    def tested(self, generator: np.random.Generator) -> CrossedTest:
        """The compared row against the first, as a report tests them."""
        rows = [
            {SCORE: {seed: scores[None] for seed, scores in enumerate(row) if not self._lacks(place, seed)}}
            for place, row in enumerate(self.table(generator))
        ]
        (found,) = over_seeds([(self.compared, 0, SCORE)], rows)
        assert found is not None
        assert found.seeds == self.seeds
        return found

    def _lacks(self, row: int, seed: int) -> bool:
        return self.lacking and seed == (0 if row == self.compared else row) % (self.seeds + 1)


def positive(world: World, draws: int) -> float:
    """The share of tables with p < 0.05."""
    generator = np.random.default_rng(0)
    return float(np.mean([world.tested(generator).p_value < 0.05 for _ in range(draws)]))


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


if __name__ == "__main__":
    main()
