"""The command that a user gives for more seeds than a sweep has."""

from paribus.commands.retyped import retyped
from paribus.config.arguments import Command
from paribus.config.compose import Composition

SEED = "seed"
SEEDS = 10


def with_more_seeds(command: Command, composition: Composition) -> str:
    """`paribus run` of the arms of a command at its own seeds and those below ten."""
    seeds = sorted({job.config.seed for job in composition.jobs} | set(range(SEEDS)))
    return retyped(command, without=SEED, multirun=True, more=[f"{SEED}={','.join(map(str, seeds))}"])
