"""Selection of the runs of a verb: by their overrides, by the name of a sweep or run, or the last sweep."""

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paribus.checks import compose_command
from paribus.config.arguments import Command, broken_lists
from paribus.config.compose import Composition, Job
from paribus.config.identity import canonical, identity
from paribus.config.units import format_age
from paribus.errors import ConfigurationError
from paribus.pipeline.graph import build_graph
from paribus.pipeline.prepare import RecordedFiles, overlay, prepare_runs
from paribus.pipeline.prepared import PreparedRun
from paribus.pipeline.records import (
    Reference,
    SweptRun,
    files_of,
    files_of_groups,
    find,
    is_reference,
    last_sweep,
    nothing_known,
    read_run_record,
)
from paribus.pipeline.root import OutputRoot, named_root, run_id

ROOT = "root"
_TABLE_OVERRIDE = re.compile(r"\+{0,2}experiment\.(?:table\.|title=|question=)")
"""Overrides of what a report shows, which change no run."""


@dataclass(frozen=True)
class Selection:
    """The runs of a verb."""

    command: Command
    """The command as it would be typed with overrides."""
    composition: Composition
    runs: list[PreparedRun]


def select(command: Command, say: Callable[[str], None]) -> Selection:
    """The runs of a command; of one without overrides but `root`, those of the last sweep of the output root.

    Beside a name stand no overrides but of the table. Runs that it means are those that were made, of the files as they
    were then. `say` is told which sweep is meant; ConfigurationError where that is none, or several things.
    """
    reference = _reference_of(command)
    whole = command if reference is None else _with_flags(reference.command, command)
    composition = compose_command(whole)
    if reference is None:
        return Selection(whole, composition, prepare_runs(composition, tolerate_missing=True, judge_made=False))
    runs, moved = _named_runs(composition, reference, root_of(command.overrides).path)
    say("\n".join(_describe(reference, runs, moved)))
    return Selection(whole, composition, runs)


def names_nothing(command: Command) -> bool:
    """True for a command that says nothing of runs but their output root."""
    others = [text for text in command.overrides if not text.startswith(f"{ROOT}=")]
    return not (others or command.multirun or command.config_directories)


def root_of(overrides: Sequence[str]) -> OutputRoot:
    """The output root that overrides name, the usual one where they name none."""
    given = [text.partition("=")[2].strip("'\"") for text in overrides if text.startswith(f"{ROOT}=")]
    return named_root(given[-1] if given else None)


def _reference_of(command: Command) -> Reference | None:
    pieces = {word for words, _ in broken_lists(command.overrides) for word in words}
    names = [text for text in command.overrides if is_reference(text) and text not in pieces]
    others = [text for text in command.overrides if text not in names and not text.startswith(f"{ROOT}=")]
    if len(names) > 1:
        raise ConfigurationError(f"{' and '.join(names)} are two names; ask for one sweep or run at a time")
    of_runs = [text for text in others if not _TABLE_OVERRIDE.match(text)]
    if names and (of_runs or command.multirun):
        more = " ".join([*of_runs, *(["-m"] if command.multirun else [])])
        raise ConfigurationError(f"{names[0]} names runs as they were given; leave {more} out, or give all overrides")
    if names:
        return find(names[0], root_of(command.overrides).path)
    if not names_nothing(command):
        return None
    root = root_of(command.overrides).path
    if (last := last_sweep(root)) is None:
        raise ConfigurationError(f"no sweep below {root} that could be meant: {nothing_known(root)}")
    return last


def _with_flags(recorded: Command, given: Command) -> Command:
    own = [text for text in recorded.overrides if not text.startswith(f"{ROOT}=")]
    roots = [text for text in given.overrides if text.startswith(f"{ROOT}=")]
    table = [f"++{text.lstrip('+')}" for text in given.overrides if _TABLE_OVERRIDE.match(text)]
    return Command((*recorded.flags, *given.flags), (*own, *roots, *table))


def _named_runs(composition: Composition, reference: Reference, root: Path) -> tuple[list[PreparedRun], int]:
    """Runs as they were made, and how many have other files by now; where one is another run, all as of now."""
    made = prepare_runs(
        composition, tolerate_missing=True, judge_made=False, recorded_files=_recorded_files(root, reference.runs)
    )
    if not {run.run_id for run in made} <= {run.run_id for run in reference.runs}:
        return prepare_runs(composition, tolerate_missing=True, judge_made=False), 0
    with overlay(OutputRoot.of(made[0].job.config).cache) as cache:
        ids = [run_id(build_graph(run.job.config, cache, tolerate_missing=True)) for run in made]
    return made, sum(now != run.run_id for now, run in zip(ids, made, strict=True))


def _recorded_files(root: Path, runs: Sequence[SweptRun]) -> RecordedFiles:
    """Files that each job had read when it ran; for one that never did, those of jobs of the same groups."""
    every = {_run_overrides(run.overrides): read_run_record(root / "runs" / run.run_id) for run in runs}
    records = {overrides: record for overrides, record in every.items() if record}
    of_groups = files_of_groups(records.values())

    def of_job(job: Job) -> Mapping[str, Any]:
        if own := records.get(_run_overrides(job.overrides)):
            return files_of(own, job.config)
        here = identity(job.config)
        alike = {group: of_groups.get((group, canonical(fields)), []) for group, fields in here.items()}
        return {group: files[0] for group, files in alike.items() if len(files) == 1}

    return of_job


def _run_overrides(overrides: Sequence[str]) -> frozenset[str]:
    return frozenset(text for text in overrides if not text.startswith(f"{ROOT}=") and not _TABLE_OVERRIDE.match(text))


def _describe(reference: Reference, runs: Sequence[PreparedRun], moved: int) -> Iterator[str]:
    yield f"{reference.shown}, given {format_age(time.time() - reference.sweep.given)} ago"
    changed = {run.run_id for run in reference.runs} - {run.run_id for run in runs}
    if changed:
        yield (
            f"{len(changed)} of its runs would be others now, as files, configuration or code changed since; "
            "this is how those stand that the same command makes now"
        )
    if moved:
        yield (
            f"files of {moved} of its runs are gone or others now: this is how those stand that were made of them; "
            "the same command would make others"
        )
