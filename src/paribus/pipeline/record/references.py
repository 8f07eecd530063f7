"""Names of recorded runs and sweeps: an identifier or its beginning, the name of a sweep, or `last`."""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from paribus.config.arguments import Command
from paribus.config.flags import CONFIG_DIR
from paribus.errors import ConfigurationError
from paribus.pipeline.record.sweep_record import SWEEP_RECORD, SweepRecord, SweptRun, command_of, read_sweeps
from paribus.store.files import RUN_RECORD

LAST = "last"
SHOWN = 12
"""Candidates that an error lists."""


@dataclass(frozen=True)
class Reference:
    """A recorded sweep, or one run of it."""

    sweep: SweepRecord
    run: SweptRun | None = None
    """None where the sweep is meant."""

    @property
    def id(self) -> str:
        """The identifier of what is meant."""
        return self.sweep.id if self.run is None else self.run.run_id

    @property
    def runs(self) -> tuple[SweptRun, ...]:
        """The runs that are meant."""
        return self.sweep.runs if self.run is None else (self.run,)

    @property
    def shown(self) -> str:
        """What is meant, for people."""
        if self.run is not None:
            return f"{self.run.run_id}  run {self.run.label}"
        count = len(self.runs)
        return f"{self.sweep.id}  sweep {self.sweep.name}, {count} run{'s' if count > 1 else ''}"

    @property
    def command(self) -> Command:
        """The command that makes the runs."""
        return self.sweep.command if self.run is None else command_of(self.sweep, self.run.overrides, multirun=False)


def is_reference(word: str) -> bool:
    """Return True for a word of a command that is a name, and no override or flag."""
    return re.fullmatch(r"[^~=-][^=]*", word) is not None


def last_sweep(root: Path) -> Reference | None:
    """Return the sweep of an output root whose command was given last; None where there is none."""
    return next((Reference(sweep) for sweep in read_sweeps(root)), None)


def nothing_known(root: Path) -> str:
    """Why nothing below an output root, where no sweep is on record, has a name."""
    if not any(root.glob(f"runs/*/{RUN_RECORD}")):
        return "nothing has run there; name the root with root=..."
    return (
        f"no {SWEEP_RECORD} there says what its runs are called; give the overrides that made them, and `paribus run` "
        "with these puts them on record again"
    )


def find(text: str, root: Path) -> Reference:
    """Return the sweep or run that `text` names; `last` is the sweep whose command was given last.

    ConfigurationError, with candidates, where it names none or several.
    """
    sweeps = read_sweeps(root)
    if text == LAST and sweeps:
        return Reference(sweeps[0])
    known = {one.id: one for sweep in reversed(sweeps) for one in (*_runs(sweep), Reference(sweep))}
    newest = list(known.values())[::-1]
    exact = [one for one in newest if text == one.id or (one.run is None and text == one.sweep.name)]
    found = exact or [one for one in newest if one.id.startswith(text)]
    if len(found) == 1:
        return found[0]
    if found:
        raise ConfigurationError(f"{text!r} may be several things; name one:\n{_listed(found)}")
    if not known:
        raise ConfigurationError(f"no run {text!r} below {root}: {nothing_known(root)}")
    raise ConfigurationError(f"no run or sweep {text!r} below {root}; there are\n{_listed(newest)}")


def find_run_id(text: str, root: Path) -> str:
    """Return the identifier of the run that `text` names; `last` is the run whose record was written last.

    ConfigurationError where it names none, several, or a sweep of several runs.
    """
    recorded = sorted((path for path in root.glob("runs/*") if path.is_dir()), key=_written)
    alike = recorded[-1:] if text == LAST else [path for path in recorded if path.name.startswith(text)]
    if len(alike) == 1:
        return alike[0].name
    found = find(text, root)
    if len(found.runs) > 1:
        raise ConfigurationError(f"{text!r} is several runs; name one:\n{_listed(_runs(found.sweep))}")
    return found.runs[0].run_id


def command_line(run_id: str, root: Path) -> str | None:
    """Return the command that makes one run, as it would be typed; None where no sweep has it on record."""
    for sweep in read_sweeps(root):
        for run in sweep.runs:
            if run.run_id == run_id:
                directories = [word for name in sweep.config_directories for word in (CONFIG_DIR, name)]
                own = [text.removeprefix("+") if text.startswith("+experiment=") else text for text in run.overrides]
                return shlex.join(["paribus", "run", *directories, *own])
    return None


def _written(directory: Path) -> float:
    """When the record of a run was written; 0 for a run that has none."""
    path = directory / RUN_RECORD
    return path.stat().st_mtime if path.is_file() else 0.0


def _runs(sweep: SweepRecord) -> list[Reference]:
    return [Reference(sweep, run) for run in sweep.runs]


def _listed(found: Sequence[Reference]) -> str:
    lines = [f"  {one.shown}" for one in found[:SHOWN]]
    more = len(found) - SHOWN
    return "\n".join([*lines, *([f"  and {more} more"] if more > 0 else [])])
