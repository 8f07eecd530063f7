"""Sweeps on record without anything having run: what their commands were, and which runs these made."""

from collections.abc import Sequence
from pathlib import Path

from paribus.checks import compose_command
from paribus.config.arguments import Command, parse
from paribus.pipeline.prepare import describe_sweep, prepare_runs
from paribus.pipeline.prepared import PreparedRun, write_sweep
from paribus.pipeline.root import OutputRoot
from support.finished_runs import finish

OVERRIDES = ("scale=tiny", "corpus=files", "corpus.paths=[texts.txt]", "tracking=none")


def record_sweep(root: Path, *words: str) -> tuple[str, list[PreparedRun]]:
    """Write down that this command was given in `root`; the identifier of its sweep, and its runs."""
    command = parse([*OVERRIDES, f"root={root}", *words])
    return record_command(command)


def record_command(command: Command) -> tuple[str, list[PreparedRun]]:
    composition = compose_command(command)
    runs = prepare_runs(composition)
    sweep = describe_sweep(composition, runs)
    write_sweep(OutputRoot.of(runs[0].job.config), sweep, command, runs)
    return sweep.id, runs


def finished_sweep(made: Path, *words: str) -> list[PreparedRun]:
    """A sweep in the usual root of this directory whose runs are all finished; their scores are made in `made`."""
    command = parse([*OVERRIDES, *words])
    _, runs = record_command(command)
    for number, run in enumerate(runs):
        finish(run, number, made)
    return runs


def identifiers(runs: Sequence[PreparedRun]) -> list[str]:
    return [run.run_id for run in runs]
