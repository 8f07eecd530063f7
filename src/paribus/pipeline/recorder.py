"""Record and event log of one run, and its state as others read it."""

import os
import socket
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paribus.config.identity import identity, leaves, to_plain
from paribus.config.schema import RunConfig
from paribus.errors import classify
from paribus.evaluation.heldout import HELDOUT
from paribus.pipeline.failures import Failure
from paribus.pipeline.graph import EVALUATION, FINETUNING, Node, needed_for, place_of
from paribus.pipeline.prepared import (
    PreparedRun,
    listed_name,
    own_name,
    run_identity,
    score_numbers,
    sweep_of,
    tag_origin,
)
from paribus.pipeline.records import read_run_record
from paribus.pipeline.root import OutputRoot, run_id
from paribus.store import files
from paribus.store.artifacts import Artifact, Store
from paribus.store.claims import acquire, is_held, read_holder
from paribus.store.files import RUN_RECORD, read_object_if_any
from paribus.tracking.destination import public_uri
from paribus.tracking.events import (
    AXES,
    FAILURE_TAG,
    FILE_NAME,
    STOPPED_TAG,
    EventLog,
    TextAxes,
    TextPoint,
    end_stopped,
)

NO_TABLE_TAG = "paribus.table"
SHOWN_RESULTS = ("neighbours", "lexical_neighbours", "duplicates", "order")
"""Stages whose single numbers are metrics of the run: they have no others."""
LOST, STOPPED = "lost", "stopped"


class RunRecord:
    """Writer of `runs/<id>/`: `run.json` (replaced whole), `config.json` and `events.jsonl`."""

    def __init__(self, config: RunConfig, nodes: dict[str, Node], root: OutputRoot) -> None:
        self.config, self.nodes, self.store = config, nodes, root.store
        self.run_id = run_id(nodes)
        self.directory = root.run(self.run_id)
        self.directory.mkdir(parents=True, exist_ok=True)
        tracking: dict[str, Any] = to_plain(config.tracking)
        # Without the password that it may have.
        uri = public_uri(tracking["uri"]) if tracking["uri"] else None
        sweep, given = config.sweep, sweep_of(config, root)
        self.record: dict[str, Any] = {
            "run_id": self.run_id,
            "name": own_name(config, self.run_id, given),
            "status": "running",
            "config": to_plain(config) | {"tracking": tracking | {"uri": uri}},
            "identity": run_identity(config, nodes),
            "code_versions": {name: node.stage.code_version for name, node in nodes.items()},
            "keys": {name: node.key for name, node in nodes.items()},
            "stages": {},
            "until": config.until,
            "failure": None,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "invocation": sweep.invocation if sweep else None,
            "started": time.time(),
            "ended": None,
        }
        self.events = EventLog(self.directory / FILE_NAME)
        self._axes = TextAxes()
        files.write_json(self.directory / RUN_RECORD, self.record)
        files.write_json(self.directory / "config.json", self.record["config"])
        shown_in = {"id": sweep.id, "name": sweep.name} if sweep else None
        self.events.start(self.run_id, listed_name(config, self.run_id, given), shown_in, tracking)
        self.events.tag(STOPPED_TAG, None)
        tag_origin(self.events, given)
        for path, value in leaves(identity(config)):
            if value != {}:
                self.events.parameter(path, value)
        self.events.artifact("config.json", "")

    def metric(self, name: str, value: float, step: int) -> None:
        """Log a number of the run at a step unless it is known; one in bits per byte also by tokens and text."""
        for point in self._axes.points(name, value, step):
            self.events.metric(*point)

    def published(self, points: Iterable[TextPoint]) -> None:
        """Correct the log by the numbers of a published artefact, also at steps that it lacks."""
        found: dict[tuple[str, int], float] = {}
        names = set()
        for point in points:
            names.add(point[0])
            for name, value, step in self._axes.points(*point):
                found.setdefault((name, step), value)
        stale = self._axes.stale_points(self.events.points()) if AXES.keys() <= names else set()
        self.events.correct(found, lambda name, step: name in names or (name, step) in stale)

    def stage(self, node: Node, artifact: Artifact, state: str, seconds: float) -> None:
        """Record an artefact of the run, `made` or `cached`."""
        before = self.record["stages"].get(node.name, {})
        self.record["stages"][node.name] = before | {"key": node.key, "state": state, "seconds": seconds}
        files.write_json(self.directory / RUN_RECORD, self.record)
        self.events.tag(f"paribus.artifact.{node.name}", node.key)
        result = artifact.record()["result"]
        if node.name == "corpus":
            self.events.dataset("corpus", str(result.get("digest", node.key)), self.config.corpus.kind)
        if node.name == "tasks" and (heldout := artifact.record()["files"].get(HELDOUT)):
            self.events.tag("paribus.heldout", heldout["sha256"][:12])
        if node.name == "vocabulary":
            self.events.artifact(artifact.path / "tokenizer", "tokenizer")
        if node.name in SHOWN_RESULTS:
            prefix = f"{node.name}/"
            numbers = {prefix + name: float(value) for name, value in result.items() if isinstance(value, int | float)}
            points = {(name, 0): value for name, value in numbers.items()}
            self.events.correct(points, lambda name, step: name.startswith(prefix))

    def finish(self, failure: Failure | None) -> None:
        """Close the run: done, stopped after the stage that was asked for, or failed for a reason."""
        if failure is not None:
            _close(self.directory, self.record, failure, self.events)
        elif self.config.until is not None and not all(self.store.find(*node.place) for node in self.nodes.values()):
            self.record |= {"status": "stopped", "ended": time.time()}
            files.write_json(self.directory / RUN_RECORD, self.record)
            end_stopped(self.events, self.config.until)
        else:
            # Those too that other runs made and `until` left alone.
            for node in self.nodes.values():
                artifact = self.store.find(*node.place)
                if node.name not in self.record["stages"] and artifact is not None:
                    self.stage(node, artifact, "cached", 0.0)
            # Before the record says done: a finished run is never made again.
            self._log_numbers()
            self.record |= {"status": "done", "failure": None, "ended": time.time()}
            files.write_json(self.directory / RUN_RECORD, self.record)
            self.events.tag(FAILURE_TAG, None)
            self.events.end("FINISHED")
        self.events.close()

    def _log_numbers(self) -> None:
        """Log what the run puts into tables as metrics at its last step; a tag says why there is nothing."""
        from paribus.reporting.compare import SECTION

        try:
            numbers, step = table_numbers(self.record["stages"], self.store)
        except Exception as error:  # whatever the report stumbles over, the run is done
            self.events.tag(NO_TABLE_TAG, f"no numbers: {classify(error)['message']}"[:5000])
            numbers, step = {}, 0
        else:
            with suppress(OSError):
                self.events.tag(NO_TABLE_TAG, None)
        with suppress(OSError):  # as numbers of stages; a report has them from the artefacts
            last = dict.fromkeys(numbers, step)
            for name, at in self.events.points():  # trackers show the last step's, also of another training
                last[name] = max(at, last.get(name, at))
            points = {(name, last[name]): value for name, value in numbers.items()}
            self.events.correct(points, lambda name, step: name.startswith(SECTION) or "/" not in name)


def table_numbers(stages: Mapping[str, Mapping[str, Any]], store: Store) -> tuple[dict[str, float], int]:
    """Numbers of the run by name, its main scores too, and the training step they stand at; nothing without scores.

    `stages` has the key of each artefact. Raises DataError for torn scores.
    """
    from paribus.reporting.compare import run_numbers

    artifacts = {name: store.find(*place_of(name, stage["key"])) for name, stage in stages.items()}
    scores, finetuned, trained = (artifacts.get(name) for name in (EVALUATION, FINETUNING, "training"))
    if scores is None or trained is None:
        return {}, 0
    training = trained.record()["result"]
    numbers = run_numbers(scores.path, finetuned.path if finetuned else None, training)
    results = [artifact.record()["result"] for artifact in (scores, finetuned) if artifact is not None]
    return numbers | score_numbers(results), int(training.get("steps", 0))


def _close(directory: Path, record: dict[str, Any], failure: Failure, events: EventLog) -> None:
    interrupted = failure.failure_class == "interrupted"
    ended = {"status": "interrupted" if interrupted else "failed", "failure": failure.to_json(), "ended": time.time()}
    files.write_json(directory / RUN_RECORD, record | ended)
    events.tag(FAILURE_TAG, failure.shown[:5000])
    # What is refused between stages has no log.
    if failure.log is not None and (directory / failure.log).is_file():
        events.artifact(directory / failure.log, "logs")
    events.end("KILLED" if interrupted else "FAILED")


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
    """True if a run, or its part up to stage `until`, is recorded as done and has every artefact."""
    record, required = read_run_record(root.run(identifier)), needed_for(nodes, until)
    if record is None or not (record["status"] == "done" or (until is not None and _is_behind(record, nodes, until))):
        return False
    named = until is not None or record["stages"].keys() >= required.keys()
    return named and all(root.store.find(*node.place) for node in required.values())


def _is_behind(record: Mapping[str, Any], nodes: Mapping[str, Node], until: str) -> bool:
    """True if a run that is not done stopped, or failed, no sooner than behind stage `until`."""
    if record["status"] == STOPPED:
        return until in needed_for(nodes, record["until"])
    stage = (record["failure"] or {}).get("stage")
    return bool(stage) and stage not in needed_for(nodes, until)


def read_state(root: OutputRoot, run: PreparedRun) -> RunState:
    """The state of a run; nothing is written.

    A finished run is done whoever holds it: a job that finds it finished holds it for the moment of looking.
    """
    path, directory = root.run_claim(run.run_id), root.run(run.run_id)
    record = read_run_record(directory)
    holder = read_holder(path) if is_held(path, root.lease_seconds) else None
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
    """Note that the job of a run left beside its record; empty where there is none that can be read."""
    note = read_object_if_any(root.refusal(run_id))
    return note if {"class", "message"} <= note.keys() else {}


def _lacking(root: OutputRoot, nodes: Mapping[str, Node]) -> Failure | None:
    """Failure that names the first damaged artefact, or else one that is gone."""
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


def mark_lost(root: OutputRoot, run_id: str, why: str | None) -> None:
    """Record a lost run as failed, in its record and in its events; a run that is held or ended is left alone."""
    held, directory = acquire(root.run_claim(run_id), root.lease_seconds), root.run(run_id)
    if held is None:
        return
    with held:
        record = read_run_record(directory)
        if record is not None and record["status"] == "running":
            with EventLog(directory / FILE_NAME) as events:
                _close(directory, record, _why_lost(root, run_id, record, why), events)
