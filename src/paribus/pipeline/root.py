"""Paths below the output root of a configuration, and an inventory of its runs and artefacts."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from paribus.config.fields import proper_path
from paribus.config.groups.execution import EngineConfig, SweepConfig
from paribus.config.identity import digest
from paribus.config.schema import RunConfig
from paribus.errors import ConfigurationError
from paribus.pipeline.graph import EVALUATION, FINETUNING, Node, Place, place_of
from paribus.pipeline.records import SWEEP_RECORD, read_run_record
from paribus.store.artifacts import RECORD, Store
from paribus.store.claims import is_held, run_claim
from paribus.store.files import RUN_RECORD, read_object_if_any

RUN_ID_LENGTH = 16
ORDERS, TOKENS = "orders", "tokens"
"""Verbs that report on data, and the names of the directories of their reports."""
ARTEFACTS = "artifacts"
"""Directory of an output root that is its store."""
DONE, RUNNING, FAILED, INCOMPLETE, NOT_STARTED = "done", "running", "failed", "incomplete", "not started"


@dataclass(frozen=True)
class OutputRoot:
    """Paths of one output root."""

    path: Path
    lease_seconds: float

    @classmethod
    def of(cls, config: RunConfig) -> "OutputRoot":
        """The output root of a configuration; ConfigurationError where that can be no directory."""
        return cls(output_root(config.root), config.engine.lease_seconds)

    def require_writable(self) -> None:
        """Make the root; ConfigurationError where no files can be made there."""
        if message := self.unwritable(make=True):
            raise ConfigurationError(f"root: {message}")

    def unwritable(self, *, make: bool = False) -> str:
        """Reason why no files can be written to the root, which is made where `make` says so; empty if they can."""
        try:
            if make:
                self.path.mkdir(parents=True, exist_ok=True)
            existing = next(path for path in (self.path, *self.path.parents) if path.is_dir())
            with TemporaryFile(dir=existing):
                return ""
        except OSError as error:
            return f"{str(self.path)!r} cannot hold an output root ({error.strerror}); name another with root=..."

    @property
    def is_used(self) -> bool:
        """True if a command has made anything there."""
        records = (f"runs/*/{RUN_RECORD}", f"sweeps/*/{SWEEP_RECORD}")
        return (self.path / ARTEFACTS).is_dir() or any(any(self.path.glob(pattern)) for pattern in records)

    @property
    def store(self) -> Store:
        return Store(self.path / ARTEFACTS, self.lease_seconds)

    @property
    def cache(self) -> Path:
        """Directory of what may be made again: digests of files outside the store, probes of training speed."""
        return self.path / "cache"

    @property
    def reruns(self) -> Path:
        """Directory of the output roots of runs that were made again, each named by its run and a random suffix."""
        return self.path / "reruns"

    def run(self, run_id: str) -> Path:
        """Directory of a run: its record, events and logs."""
        return self.path / "runs" / run_id

    def refusal(self, run_id: str) -> Path:
        """Path of the note that says why a job did not start its run, or could not record its end."""
        return self.path / "failures" / f"run-{run_id}.json"

    def run_claim(self, run_id: str) -> Path:
        return run_claim(self.path, run_id)

    def data_report(self, verb: str, subject: object) -> Path:
        """Directory of the report of `orders` or `tokens` on `subject`, plain data that tells reports apart."""
        return self.path / verb / digest(subject)[:16]

    def sweep(self, sweep_id: str) -> Path:
        """Directory of a sweep: its events and the list of its artefacts."""
        return self.path / "sweeps" / sweep_id

    def stop_mark(self, sweep: SweepConfig) -> Path:
        """Path of the note that says why a command stopped its sweep; absent while that goes on."""
        return self.sweep(sweep.id) / f"stopped-{sweep.invocation}"

    def failure(self, node: Node) -> Path:
        """Path of the note of a stage's last failure."""
        return self.path / "failures" / f"{'-'.join(node.place)}.json"


def report_directory(root: Path, sweep: str, name: str) -> Path:
    """Directory of the report of a sweep, given its identifier and name."""
    return root / "reports" / f"{name.replace('/', '-')}-{sweep[:8]}"


def output_root(text: str) -> Path:
    """The output root as an absolute path, there or still to be made; ConfigurationError where a file is there."""
    path = Path(os.path.realpath(text))
    if path.exists() and not path.is_dir():
        raise ConfigurationError(f"root: {str(path)!r} is no directory; name the output root with root=...")
    return path


def named_root(text: str | None) -> OutputRoot:
    """The output root that somebody named, or the usual one, with the usual lease; ConfigurationError for none."""
    try:
        path = output_root(proper_path(RunConfig.root if text is None else text))
        return OutputRoot(path, EngineConfig.lease_seconds)
    except ValueError as error:
        raise ConfigurationError(f"root: {error}") from error


def run_id(nodes: dict[str, Node]) -> str:
    """Identifier of a run: the start of the key of its last artefact, with fine-tuning of that and its scores."""
    key = list(nodes.values())[-1].key
    if FINETUNING in nodes:
        key = digest([nodes[EVALUATION].key, key])
    return key[:RUN_ID_LENGTH]


# An inventory is read from records alone, a thousand runs in about a second: artefacts are looked for and not verified,
# as `paribus status RUN` does.
@dataclass(frozen=True)
class RunSummary:
    """A run that was begun."""

    run_id: str
    name: str
    state: str
    """State that `paribus status RUN` shows, if all artefacts that exist are sound."""
    why: str
    """The message of its failure; empty without one."""
    artefacts: frozenset[Place]
    """All that its record names, whether they are still there or not."""
    record: Mapping[str, Any]


@dataclass(frozen=True)
class Inventory:
    """The runs of an output root, and its artefacts."""

    root: OutputRoot
    runs: Mapping[str, RunSummary]
    """Runs by identifier, the one that began last first."""
    artefacts: frozenset[Place]

    @cached_property
    def records(self) -> Mapping[Place, Mapping[str, Any]]:
        """The record of each artefact, empty where it cannot be read."""
        return {place: read_object_if_any(self.root.store.path(*place) / RECORD) for place in self.artefacts}

    def scores(self, run_id: str) -> dict[str, float]:
        """Numbers of the last checkpoint as its evaluation logged them: `eval/bits_per_byte`; none before that."""
        keys = {stage: key for stage, key in self.runs[run_id].artefacts if stage in (EVALUATION, FINETUNING)}
        results = [self.records.get(place, {}).get("result", {}) for place in keys.items()]
        return {name: float(value) for result in results for name, value in result.get("metrics", {}).items()}

    def files(self, place: Place) -> dict[str, int]:
        """Bytes of each file that an artefact still has, by its record; none where that cannot be read."""
        files = self.records[place].get("files", {}) if place in self.records else {}
        path = self.root.store.path(*place)
        gone = {name for name in self.root.store.pruned(*place) if not (path / name).exists()}
        return {name: int(about["bytes"]) for name, about in files.items() if name not in gone}


def take_inventory(root: OutputRoot) -> Inventory:
    """Everything that is recorded below an output root; of one that is not there, nothing."""
    published, runs = frozenset(root.store.places()), []
    for directory in (root.path / "runs").glob("*"):
        if not directory.is_dir() or (record := read_run_record(directory)) is None:
            continue
        artefacts = frozenset(place_of(stage, str(about["key"])) for stage, about in record["stages"].items())
        failure = record["failure"] or {}
        summary = RunSummary(
            run_id=directory.name,
            name=str(record.get("name", directory.name)),
            state=_state(record, root, directory.name, artefacts <= published),
            why=str(failure.get("message", "")),
            artefacts=artefacts,
            record=record,
        )
        runs.append(summary)
    newest = sorted(runs, key=lambda run: (-(run.record.get("started") or 0.0), run.run_id))
    return Inventory(root, {run.run_id: run for run in newest}, published)


def _state(record: Mapping[str, Any], root: OutputRoot, run_id: str, whole: bool) -> str:
    """State as `recorder.read_state` has it; a finished run is done whoever holds it."""
    status = str(record["status"])
    if status == DONE and whole:
        return DONE
    if is_held(root.run_claim(run_id), root.lease_seconds):
        return RUNNING
    if status in (DONE, "stopped") and not whole:
        return INCOMPLETE
    if status == RUNNING:
        return FAILED
    return f"stopped after {record['until']}" if status == "stopped" else status
