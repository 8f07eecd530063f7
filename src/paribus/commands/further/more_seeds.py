"""The command that a user gives after a single run, for the spread of three seeds."""

from collections.abc import Iterable
from dataclasses import replace

from paribus.commands.retyped import retyped
from paribus.config.arguments import Command
from paribus.config.schema import RunConfig
from paribus.pipeline.graph import build_graph
from paribus.pipeline.output_root import OutputRoot, run_id
from paribus.pipeline.prepared_run import PreparedRun
from paribus.training.start.resumed import EVERY_SEED, resuming

SEED = "seed"
FEWEST = 3
"""Of which a table takes a spread and a test."""


def seeds_of_another(config: RunConfig) -> str | None:
    """Why no other seed can be given to a run, and what takes several; None where each makes a run."""
    if resuming(config) is None:
        return None
    return f"start.optimizer=resumed goes on with a training of one seed; {EVERY_SEED}"


def draws_by_its_seed(run: PreparedRun) -> bool:
    """Whether another seed makes another run, as it does unless `seeds` fixes all parts."""
    other = replace(run.job.config, seed=run.job.config.seed + 1)
    return run_id(build_graph(other, OutputRoot.of(other).cache, tolerate_missing=True)) != run.run_id


def with_three_seeds(command: Command, seed: int) -> str:
    """`paribus run` of a single run's command at its seed and the two lowest others."""
    others = [other for other in range(FEWEST) if other != seed]
    return _with(command, {seed, *others[: FEWEST - 1]})


def _with(command: Command, seeds: Iterable[int]) -> str:
    given = ",".join(map(str, sorted(seeds)))
    return retyped(command, without=SEED, multirun=True, more=[f"{SEED}={given}"])
