"""Records of runs and sweeps (`run.json`, `sweep.json`): reading them, finding them by name."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from paribus.config.arguments import CONFIG_DIR, Command, Flag
from paribus.config.identity import canonical, identity
from paribus.config.schema import RunConfig
from paribus.errors import ConfigurationError, DataError
from paribus.store.files import METRICS, RUN_RECORD, read_object_if_any

UNREADABLE = "unreadable"
SWEEP_RECORD = "sweep.json"
MULTIRUN = "--multirun"
LAST = "last"
SHOWN = 12
"""Candidates that an error lists."""


def read_run_record(directory: Path) -> dict[str, Any] | None:
    """The record of a run, None when it never began; one that cannot be read has the reason as its failure."""
    path = directory / RUN_RECORD
    if not path.is_file():
        return None
    try:
        loaded: dict[str, Any] = json.loads(path.read_bytes())
        _check(loaded)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        what = f"lacks {error}" if isinstance(error, KeyError) else str(error)
        message = f"{path} is of another version of paribus, or damaged: {what}; the same `paribus run` writes it again"
        failure = {"class": "infrastructure", "message": message}
        return {"status": UNREADABLE, "failure": failure, "stages": {}, "code_versions": {}}
    return loaded


def require_run_record(run_id: str, root: Path) -> dict[str, Any]:
    """The record of a run of an output root; DataError where it never began, and where its record cannot be read."""
    record = read_run_record(root / "runs" / run_id)
    if record is None:
        raise DataError(f"run {run_id} was not begun below {root}; paribus status shows how it stands")
    if record["status"] == UNREADABLE:
        raise DataError(record["failure"]["message"])
    return record


def read_metrics(directory: Path) -> Iterator[tuple[str, float, int]]:
    """Name, value and step of the numbers of an artefact, in the order in which they were logged."""
    path = directory / METRICS
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
        values = json.loads(line)
        step = int(values.pop("step"))
        yield from ((name, float(value), step) for name, value in values.items())


def files_of(record: Mapping[str, Any], config: RunConfig) -> Mapping[str, Any]:
    """Fingerprints by group of the files that a recorded run read; none of groups that are otherwise in `config`."""
    recorded, here = record.get("identity", {}), identity(config)
    files: Mapping[str, Any] = recorded.get("fingerprints", {})
    return {group: files[group] for group in files if canonical(recorded.get(group)) == canonical(here.get(group))}


def files_of_groups(records: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], list[Any]]:
    """Different fingerprints that runs have, by group and its configuration in canonical JSON."""
    fingerprints: dict[tuple[str, str], dict[str, Any]] = {}
    for record in records:
        recorded = record.get("identity", {})
        for group, files in recorded.get("fingerprints", {}).items():
            fingerprints.setdefault((group, canonical(recorded.get(group))), {})[canonical(files)] = files
    return {key: list(different.values()) for key, different in fingerprints.items()}


def _check(record: dict[str, Any]) -> None:
    """KeyError, TypeError or AttributeError for a record without what its readers take for granted."""
    for name in ("run_id", "status", "identity", "started"):
        record[name]
    for block in ("config", "stages", "code_versions"):
        record[block].items()
    keys = [stage["key"] for stage in record["stages"].values()]
    if record["failure"] is not None:
        keys += [record["failure"]["class"], record["failure"]["message"]]
    if not all(isinstance(key, str) for key in keys):
        raise TypeError(f"{keys} are not all texts")


def moved_config(config: Mapping[str, Any], root: Path) -> dict[str, Any]:
    """A recorded configuration with `root` as its output root, and as that of `start` where it was the same."""
    start = config["start"]
    moved = {"root": str(root)} if start.get("root") == config["root"] else {}
    return {**config, "root": str(root), "start": start | moved}


# `sweep.json` is for people, who then name a sweep or a run in place of its overrides; nothing is decided by it.
@dataclass(frozen=True)
class SweptRun:
    """A run as the command of a sweep had it."""

    run_id: str
    name: str
    """Name in its own record: `bpe-merge_rank-standard-seed0`."""
    label: str
    """Label in the list of the sweep: `bpe merge_rank seed=0`."""
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
    """A command with these overrides and the configuration directories of a sweep."""
    flags = [Flag(CONFIG_DIR, directory) for directory in sweep.config_directories]
    return Command((*([Flag(MULTIRUN)] if multirun else []), *flags), tuple(overrides))


def read_sweep(directory: Path) -> SweepRecord | None:
    """The record of a sweep in its directory; None where there is none or it cannot be read."""
    try:
        return _sweep_reader().validate_python(read_object_if_any(directory / SWEEP_RECORD))
    except ValidationError:
        return None


@cache  # a root may have a thousand sweeps
def _sweep_reader() -> TypeAdapter[SweepRecord]:
    return TypeAdapter(SweepRecord)


def read_sweeps(root: Path) -> list[SweepRecord]:
    """The sweeps of an output root, the one that was given last first; records that cannot be read are left out."""
    sweeps = (read_sweep(path.parent) for path in (root / "sweeps").glob(f"*/{SWEEP_RECORD}"))
    return sorted((record for record in sweeps if record is not None), key=lambda record: (-record.given, record.id))


@dataclass(frozen=True)
class Reference:
    """A recorded sweep, or one `run` of it."""

    sweep: SweepRecord
    run: SweptRun | None = None

    @property
    def id(self) -> str:
        return self.sweep.id if self.run is None else self.run.run_id

    @property
    def runs(self) -> tuple[SweptRun, ...]:
        return self.sweep.runs if self.run is None else (self.run,)

    @property
    def shown(self) -> str:
        if self.run is not None:
            return f"{self.run.run_id}  run {self.run.label}"
        count = len(self.runs)
        return f"{self.sweep.id}  sweep {self.sweep.name}, {count} run{'s' if count > 1 else ''}"

    @property
    def command(self) -> Command:
        return self.sweep.command if self.run is None else command_of(self.sweep, self.run.overrides, multirun=False)


def is_reference(word: str) -> bool:
    """Return True for a word of a command that is a name, and no override or flag."""
    return re.fullmatch(r"[^~=-][^=]*", word) is not None


def last_sweep(root: Path) -> Reference | None:
    """Return the sweep of an output root whose command was given last; None where there is none."""
    return next((Reference(sweep) for sweep in read_sweeps(root)), None)


def nothing_known(root: Path) -> str:
    """Reason why nothing has a name below an output root where no sweep is on record."""
    if not any(root.glob(f"runs/*/{RUN_RECORD}")):
        return "nothing has run there; name the root with root=..."
    return (
        f"no {SWEEP_RECORD} there says what its runs are called; give the overrides that made them, and `paribus run` "
        "with these puts them on record again"
    )


def find(text: str, root: Path) -> Reference:
    """The sweep or run that `text` names, `last` being the newest; ConfigurationError for none or several."""
    sweeps = read_sweeps(root)
    if text == LAST and sweeps:
        return Reference(sweeps[0])
    known = {reference.id: reference for sweep in reversed(sweeps) for reference in (*_runs(sweep), Reference(sweep))}
    newest = list(known.values())[::-1]
    exact = [item for item in newest if text == item.id or (item.run is None and text == item.sweep.name)]
    matches = exact or [item for item in newest if item.id.startswith(text)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise ConfigurationError(f"{text!r} may be several things; name one:\n{_listed(matches)}")
    if not known:
        raise ConfigurationError(f"no run {text!r} below {root}: {nothing_known(root)}")
    raise ConfigurationError(f"no run or sweep {text!r} below {root}; there are\n{_listed(newest)}")


def find_run_id(text: str, root: Path) -> str:
    """The run that `text` names, `last` being the last recorded; ConfigurationError for none or several."""
    recorded = sorted((path for path in root.glob("runs/*") if path.is_dir()), key=_written)
    matches = recorded[-1:] if text == LAST else [path for path in recorded if path.name.startswith(text)]
    if len(matches) == 1:
        return matches[0].name
    reference = find(text, root)
    if len(reference.runs) > 1:
        raise ConfigurationError(f"{text!r} is several runs; name one:\n{_listed(_runs(reference.sweep))}")
    return reference.runs[0].run_id


def command_line(run_id: str, root: Path) -> str | None:
    """Return the command that makes one run, as it would be typed; None where no sweep has it on record."""
    for sweep in read_sweeps(root):
        for run in sweep.runs:
            if run.run_id == run_id:
                return command_of(sweep, run.overrides, multirun=False).typed("run", multirun=False)
    return None


def _written(directory: Path) -> float:
    """When the record of a run was written; 0 for a run that has none."""
    path = directory / RUN_RECORD
    return path.stat().st_mtime if path.is_file() else 0.0


def _runs(sweep: SweepRecord) -> list[Reference]:
    return [Reference(sweep, run) for run in sweep.runs]


def _listed(references: Sequence[Reference]) -> str:
    lines = [f"  {reference.shown}" for reference in references[:SHOWN]]
    more = len(references) - SHOWN
    return "\n".join([*lines, *([f"  and {more} more"] if more > 0 else [])])
