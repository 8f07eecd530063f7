"""The command that a user gives for more seeds than a sweep has."""

import shlex

from paribus.config.arguments import Command
from paribus.config.compose import Composition
from paribus.config.flags import CONFIG_DIR

SEED = "seed"
SEEDS = 10


def with_more_seeds(command: Command, composition: Composition) -> str:
    """`paribus run` of the arms of a command at its own seeds and those below ten."""
    seeds = sorted({job.config.seed for job in composition.jobs} | set(range(SEEDS)))
    directories = [word for directory in command.config_directories for word in (CONFIG_DIR, directory)]
    arms = [_typed(override) for override in command.overrides if override.lstrip("+").partition("=")[0] != SEED]
    return shlex.join(["paribus", "run", "-m", *directories, *arms, f"{SEED}={','.join(map(str, seeds))}"])


def _typed(override: str) -> str:
    """Without the plus that an experiment is read with."""
    return override.removeprefix("+") if override.startswith("+experiment=") else override
