"""The commands that a user gives for more seeds than there are."""

from collections.abc import Iterable

from paribus.commands.retyped import retyped
from paribus.config.arguments import Command
from paribus.config.compose import Composition

SEED = "seed"
SEEDS = 10
FEWEST = 3
"""Of which a table takes a spread and a test."""


def with_more_seeds(command: Command, composition: Composition) -> str:
    """`paribus run` of the arms of a command at its own seeds and those below ten."""
    return _with(command, {job.config.seed for job in composition.jobs} | set(range(SEEDS)))


def with_three_seeds(command: Command, seed: int) -> str:
    """`paribus run` of a single run's command at its seed and the two lowest others."""
    others = [other for other in range(FEWEST) if other != seed]
    return _with(command, {seed, *others[: FEWEST - 1]})


def _with(command: Command, seeds: Iterable[int]) -> str:
    given = ",".join(map(str, sorted(seeds)))
    return retyped(command, without=SEED, multirun=True, more=[f"{SEED}={given}"])
