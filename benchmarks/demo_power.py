"""How often the demo shows what it is for: seeds drawn from trainings that are not the demo's.

paribus run experiment=demo seed=100,101,... root=ROOT
python benchmarks/demo_power.py ROOT [--seeds 3 4 5 6] [--draws 2000]

Draws so many seeds of ROOT without replacement, the same for every arm, and judges them as a report does. The share
of draws in which an effect is beyond chance is its power with seeds that nobody has looked at; the demo's own seeds
take no part.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

from paribus.checks import compose_command
from paribus.config.arguments import Command
from paribus.config.groups.execution import EngineConfig
from paribus.pipeline.prepare import prepare_runs
from paribus.pipeline.records import read_sweeps
from paribus.pipeline.results import collect
from paribus.pipeline.root import OutputRoot
from paribus.reporting.columns import Values
from paribus.reporting.compare import Comparison, compare, values_by_seed
from paribus.reporting.judgement import ArmScores
from paribus.reporting.significance import LEVEL, judged_together


def comparison_of(root: Path) -> Comparison:
    """The table of the last sweep of a root."""
    sweep = read_sweeps(root)[0]
    composition = compose_command(Command(sweep.command.flags, (*sweep.overrides, f"root={root}")))
    runs = prepare_runs(composition, tolerate_missing=True)
    records, missing = collect(runs, composition.factors, OutputRoot(root, EngineConfig().lease_seconds))
    return compare(records, composition.factors, missing)


def drawn(values: Values, seeds: np.ndarray) -> Values:
    """An arm's scores at the drawn seeds, numbered anew."""
    return {place: values[seed] for place, seed in enumerate(seeds.tolist())}


def main() -> None:
    """Print the power of each effect by the number of seeds."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("root", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[3, 4, 5, 6])
    parser.add_argument("--draws", type=int, default=2_000)
    given = parser.parse_args()
    comparison, generator = comparison_of(given.root), np.random.default_rng(0)
    effects = comparison.effects
    (column,) = (column for column in comparison.columns if column.key == effects[0].column)
    arms = [values_by_seed(row, column, comparison.scores) for row in comparison.rows]
    seeds = sorted(set.intersection(*(set(arm) for arm in arms)))
    named = [f"{' × '.join(each.contrast.values)}: {each.test.difference:+.4f}" for each in effects]
    sys.stdout.write(f"| seeds an arm, from {len(seeds)} | {' | '.join(named)} |\n|--:{'|--:' * len(named)}|\n")
    weights = [effect.contrast.weights for effect in effects]
    for number in given.seeds:
        found = np.zeros(len(effects))
        for _ in range(given.draws):
            chosen = generator.choice(seeds, number, replace=False)
            scores = ArmScores([drawn(arm, chosen) for arm in arms])
            tests = [scores.test(each) for each in weights]
            judged = judged_together([test for test in tests if test], weights, 1)
            found += [adjusted < LEVEL for _, adjusted in judged]
        sys.stdout.write(f"| {number} | {' | '.join(f'{100 * share:.1f} %' for share in found / given.draws)} |\n")


if __name__ == "__main__":
    main()
