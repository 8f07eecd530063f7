"""How a run stands: what its record says, and whether the process that wrote it is still there."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paribus.pipeline.graph import Node, needed_for
from paribus.pipeline.output_root import OutputRoot
from paribus.pipeline.prepared_run import PreparedRun
from paribus.pipeline.record.failure import Failure
from paribus.pipeline.record.recorder import fail_record
from paribus.pipeline.record.run_record import read_run_record
from paribus.store.claims import acquire, is_held, read_holder
from paribus.store.files import read_object_if_any

LOST, STOPPED = "lost", "stopped"


@dataclass(frozen=True)
class RunState:
    """`status` is that of the record, `not started` without one, `unreadable` where nobody can read it.

    It is `stopped` where the run was to end after a stage, and did; `lost` where the record says running and the
    process is gone; `incomplete` where it says done or stopped and an artefact is gone or damaged. `full_disk` where a
    lost run left word that there was no room to record how it ended.
    """

    status: str
    failure: Failure | None
    record: dict[str, Any] | None
    holder: dict[str, Any] | None
    full_disk: bool = False

    @property
    def shown(self) -> str:
        """The status for people: a lost run has failed, a stopped one says where."""
        if self.status == STOPPED and self.record is not None:
            return f"stopped after {self.record['until']}"
        return "failed" if self.status == LOST else self.status


NOT_STARTED = RunState("not started", None, None, None)


def is_done(identifier: str, nodes: Mapping[str, Node], root: OutputRoot, until: str | None) -> bool:
    """Whether a run, or all of it that stage `until` takes, is recorded as done and every artefact of that is there."""
    record, wanted = read_run_record(root.run(identifier)), needed_for(nodes, until)
    if record is None or not (record["status"] == "done" or (until is not None and _is_behind(record, nodes, until))):
        return False
    named = until is not None or record["stages"].keys() >= wanted.keys()
    return named and all(root.store.find(*node.place) for node in wanted.values())


def _is_behind(record: Mapping[str, Any], nodes: Mapping[str, Node], until: str) -> bool:
    """Whether a run that is not done stopped, or failed, no sooner than behind stage `until`."""
    if record["status"] == STOPPED:
        return until in needed_for(nodes, record["until"])
    stage = (record["failure"] or {}).get("stage")
    return bool(stage) and stage not in needed_for(nodes, until)


def read_state(root: OutputRoot, run: PreparedRun) -> RunState:
    """The state of a run; nothing is written.

    A finished run is done whoever holds it: a job that finds it finished holds it for the moment of looking.
    """
    path, directory = root.run_claim(run.run_id), root.run(run.run_id)
    record, holder = read_run_record(directory), _living_holder(path, root)
    if record is not None and record["status"] == "running" and holder is None and read_run_record(directory) != record:
        return read_state(root, run)  # its process ended it between the two looks, or another began
    last = record["until"] if record is not None and record["status"] == STOPPED else None
    complete = is_done(run.run_id, run.nodes, root, last)
    if holder is not None and (last is not None or not complete):
        return RunState("running", None, record, holder)
    note = _note(root, run.run_id)
    if record is None:
        return RunState("failed", Failure.from_json(note), None, None) if note else NOT_STARTED
    if record["status"] == "running":
        return RunState(LOST, _why_lost(root, run.run_id, record), record, None, note.get("full_disk", False))
    if record["status"] in ("done", STOPPED) and not complete:
        return RunState("incomplete", _lacking(root, needed_for(run.nodes, last)), record, None)
    failure = Failure.from_json(record["failure"]) if record["failure"] else None
    return RunState(record["status"], failure, record, None)


def _note(root: OutputRoot, run_id: str) -> dict[str, Any]:
    """What the job of a run left beside its record; empty where it left nothing that can be read."""
    note = read_object_if_any(root.refusal(run_id))
    return note if {"class", "message"} <= note.keys() else {}


def _living_holder(path: Path, root: OutputRoot) -> dict[str, Any] | None:
    return read_holder(path) if is_held(path, root.lease_seconds) else None


def _lacking(root: OutputRoot, nodes: Mapping[str, Node]) -> Failure | None:
    """What is wrong with the first damaged artefact, or else which one is gone."""
    again, gone = "the same command makes it again", None
    for node in nodes.values():
        path = root.store.path(*node.place)
        if problem := root.store.damage(*node.place):
            return Failure("infrastructure", f"damaged: {path}: {problem}; {again}", node.name)
        if gone is None and not path.exists():
            gone = Failure("infrastructure", f"gone: {path}; {again}", node.name)
    return gone


def _why_lost(root: OutputRoot, run_id: str, record: dict[str, Any], why: str | None = None) -> Failure:
    """The failure of a run whose process is gone: its last word, if it left one; `why` is what the launcher says."""
    if note := _note(root, run_id):
        return Failure.from_json(note)
    process = f"process {record.get('pid')} on {record.get('host')}"
    reason = f" ({why})" if why else ", killed from outside or with its node"
    return Failure("infrastructure", f"{process} ended without a word{reason}; the same command carries on")


def settle(root: OutputRoot, run_id: str, why: str | None) -> None:
    """Record a lost run as failed, in its record and in its events; a run that is held or ended is left alone."""
    held = acquire(root.run_claim(run_id), root.lease_seconds)
    if held is None:
        return
    with held:
        record = read_run_record(root.run(run_id))
        if record is not None and record["status"] == "running":
            fail_record(root.run(run_id), record, _why_lost(root, run_id, record, why))
