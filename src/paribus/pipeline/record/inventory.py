"""Inventory of an output root: its runs with their states, and the artefacts that each run uses.

It is read from records alone, a thousand runs in about a second: artefacts are looked for and not verified, as
`paribus status RUN` does.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from paribus.pipeline.output_root import OutputRoot
from paribus.pipeline.record.run_record import read_run_record
from paribus.pipeline.stages import EVALUATION, FINETUNING, Place, place_of
from paribus.store.artifacts import NOT_STAGES, RECORD
from paribus.store.claims import is_held
from paribus.store.files import read_object_if_any

DONE, RUNNING, FAILED, INCOMPLETE, NOT_STARTED = "done", "running", "failed", "incomplete", "not started"


@dataclass(frozen=True)
class KeptRun:
    """A run that was begun."""

    run_id: str
    name: str
    state: str
    """State that `paribus status RUN` shows, if all artefacts that exist are sound."""
    why: str
    """The message of its failure; empty without one."""
    started: float | None
    """Seconds since 1970; None where the record cannot be read."""
    ended: float | None
    artefacts: frozenset[Place]
    """All that its record names, whether they are still there or not."""
    record: Mapping[str, Any]


@dataclass(frozen=True)
class Inventory:
    """The runs of an output root, and its artefacts."""

    root: OutputRoot
    runs: Mapping[str, KeptRun]
    """By identifier, the one that began last first."""
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
    there = frozenset(_artefacts(root))
    found = [_kept(path, root, there) for path in (root.path / "runs").glob("*") if path.is_dir()]
    newest = sorted((run for run in found if run is not None), key=lambda run: (-(run.started or 0.0), run.run_id))
    return Inventory(root, {run.run_id: run for run in newest}, there)


def _artefacts(root: OutputRoot) -> Iterable[Place]:
    store = root.store.root
    for stage in store.iterdir() if store.is_dir() else ():
        if stage.name not in NOT_STAGES and stage.is_dir():
            yield from ((stage.name, path.name) for path in stage.iterdir() if path.is_dir())


def _kept(directory: Path, root: OutputRoot, there: frozenset[Place]) -> KeptRun | None:
    record = read_run_record(directory)
    if record is None:
        return None
    named = frozenset(place_of(stage, str(about["key"])) for stage, about in record["stages"].items())
    failure = record["failure"] or {}
    return KeptRun(
        run_id=directory.name,
        name=str(record.get("name", directory.name)),
        state=_state(record, root, directory.name, named <= there),
        why=str(failure.get("message", "")),
        started=record.get("started"),
        ended=record.get("ended"),
        artefacts=named,
        record=record,
    )


def _state(record: Mapping[str, Any], root: OutputRoot, run_id: str, whole: bool) -> str:
    """State as `read_state` has it; a finished run is done whoever holds it."""
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
