"""The record of a sweep, `sweep.json`: the command that it was given by, and the runs that this made.

It is for people, who then name a sweep or a run in place of its overrides. What is made and what is left, the store and
the records of runs say; nothing is decided by this.
"""

import dataclasses
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paribus.config.arguments import Command, Flag
from paribus.config.flags import CONFIG_DIR
from paribus.config.groups.execution import SweepConfig
from paribus.pipeline.output_root import OutputRoot
from paribus.pipeline.prepare import labels, run_name
from paribus.pipeline.prepared_run import PreparedRun
from paribus.store import atomic
from paribus.store.json_file import read_object_if_any
from paribus.tracking.destination import public_uri

SWEEP_RECORD = "sweep.json"
MULTIRUN = "--multirun"
_OF_A_LAUNCHER = "hydra.launcher."
"""Settings that make no run another one, and may hold what is nobody's to read: `setup` of submitit."""


@dataclass(frozen=True)
class SweptRun:
    """A run as the command of a sweep had it."""

    run_id: str
    name: str
    """As in its own record: `bpe-merge_rank-standard-seed0`."""
    label: str
    """As in the list of the sweep: `bpe merge_rank seed=0`."""
    overrides: tuple[str, ...]


@dataclass(frozen=True)
class SweepRecord:
    """A sweep, or a single run, as it was given."""

    id: str
    name: str
    given: float
    """When the command was given the last time, in seconds since 1970."""
    multirun: bool
    overrides: tuple[str, ...]
    config_directories: tuple[str, ...]
    runs: tuple[SweptRun, ...]

    @property
    def command(self) -> Command:
        """The command, with the flags that choose what it composes."""
        return command_of(self, self.overrides, multirun=self.multirun)


def command_of(sweep: SweepRecord, overrides: Sequence[str], *, multirun: bool) -> Command:
    """A command of these overrides with the groups that a sweep had."""
    flags = [Flag(CONFIG_DIR, directory) for directory in sweep.config_directories]
    return Command((*([Flag(MULTIRUN)] if multirun else []), *flags), tuple(overrides))


def write_sweep(root: OutputRoot, sweep: SweepConfig, command: Command, runs: Sequence[PreparedRun]) -> None:
    """Write down by which command a sweep was given, now. Passwords of a tracker stay out of it."""
    named = zip(labels(runs), runs, strict=True)
    record = SweepRecord(
        id=sweep.id,
        name=sweep.name,
        given=time.time(),
        multirun=command.multirun,
        overrides=_public(command.overrides, runs[0]),
        config_directories=tuple(str(Path(directory).resolve()) for directory in command.config_directories),
        runs=tuple(
            SweptRun(
                run.run_id,
                run_name(dataclasses.replace(run.job.config, sweep=sweep)),
                label,
                _public(run.job.overrides, run),
            )
            for label, run in named
        ),
    )
    path = root.sweep(sweep.id) / SWEEP_RECORD
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic.write_json(path, dataclasses.asdict(record))


def read_sweeps(root: Path) -> list[SweepRecord]:
    """The sweeps of an output root, the one that was given last first; records that cannot be read are left out."""
    found = (_record(read_object_if_any(path)) for path in (root / "sweeps").glob(f"*/{SWEEP_RECORD}"))
    return sorted((record for record in found if record is not None), key=lambda record: (-record.given, record.id))


def _record(fields: Mapping[str, Any]) -> SweepRecord | None:
    try:
        runs = tuple(
            SweptRun(str(run["run_id"]), str(run["name"]), str(run["label"]), tuple(map(str, run["overrides"])))
            for run in fields["runs"]
        )
        return SweepRecord(
            id=str(fields["id"]),
            name=str(fields["name"]),
            given=float(fields["given"]),
            multirun=bool(fields["multirun"]),
            overrides=tuple(map(str, fields["overrides"])),
            config_directories=tuple(map(str, fields["config_directories"])),
            runs=runs,
        )
    except (KeyError, TypeError, ValueError):
        return None


def _public(overrides: Sequence[str], run: PreparedRun) -> tuple[str, ...]:
    """Overrides without what is no business of whoever reads the record."""
    return tuple(_shown(overrides, run.job.config.tracking.uri))


def _shown(overrides: Sequence[str], uri: str | None) -> Iterator[str]:
    for override in overrides:
        key = override.lstrip("+~").partition("=")[0]
        if key == "tracking.uri" and uri:
            yield f"tracking.uri='{public_uri(uri)}'"
        elif not key.startswith(_OF_A_LAUNCHER):
            yield override
