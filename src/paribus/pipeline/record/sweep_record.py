"""The record of a sweep, `sweep.json`: the command that it was given by, and the runs that this made.

It is for people, who then name a sweep or a run in place of its overrides. What is made and what is left, the store and
the records of runs say; nothing is decided by this.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paribus.config.arguments import Command, Flag
from paribus.config.flags import CONFIG_DIR
from paribus.store.files import read_object_if_any

SWEEP_RECORD = "sweep.json"
MULTIRUN = "--multirun"


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


def read_sweep(directory: Path) -> SweepRecord | None:
    """The record of a sweep in its directory; None where there is none or it cannot be read."""
    return _record(read_object_if_any(directory / SWEEP_RECORD))


def read_sweeps(root: Path) -> list[SweepRecord]:
    """The sweeps of an output root, the one that was given last first; records that cannot be read are left out."""
    found = (read_sweep(path.parent) for path in (root / "sweeps").glob(f"*/{SWEEP_RECORD}"))
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
