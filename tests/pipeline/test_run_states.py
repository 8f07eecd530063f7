"""How a run stands, also while others take it up, look at it or end it, and after its process was killed."""

import json
import os
import time
from pathlib import Path

import pytest

from paribus.pipeline import recorder as recorder_module
from paribus.pipeline.failures import Failure
from paribus.pipeline.prepared import PreparedRun
from paribus.pipeline.recorder import LOST, RunRecord, read_state
from paribus.pipeline.root import OutputRoot
from paribus.store.claims import Claim, acquire
from paribus.tracking.events import EventLog
from paribus.tracking.sync import close_abandoned
from support.plans import planned_run, store_record


@pytest.fixture
def run(tmp_path: Path) -> PreparedRun:
    """A run whose artefacts are all there, and which has no record."""
    planned = planned_run(tmp_path)
    for stage in planned.nodes:
        store_record(planned, stage, {})
    return planned


def layout_of(run: PreparedRun) -> OutputRoot:
    return OutputRoot.of(run.job.config)


def recorded(run: PreparedRun) -> RunRecord:
    """A run that began."""
    return RunRecord(run.job.config, run.nodes, layout_of(run))


def claimed(run: PreparedRun) -> Claim:
    layout = layout_of(run)
    held = acquire(layout.run_claim(run.run_id), layout.lease_seconds)
    assert held is not None
    return held


def test_a_finished_run_is_done_while_another_job_looks_whether_it_is(run: PreparedRun) -> None:
    recorded(run).finish(None)
    with claimed(run):
        assert read_state(layout_of(run), run).status == "done"


def test_a_finished_run_without_one_of_its_artefacts_says_which(run: PreparedRun) -> None:
    recorded(run).finish(None)
    path = layout_of(run).store.path("training", run.nodes["training"].key)
    path.rename(path.with_name("gone"))
    state = read_state(layout_of(run), run)
    assert (state.status, state.failure and state.failure.stage) == ("incomplete", "training")
    assert state.failure is not None
    assert state.failure.message == f"gone: {path}; the same command makes it again"


def test_a_run_of_another_container_is_running_for_as_long_as_its_own_lease_says(run: PreparedRun) -> None:
    recorded(run)
    path = layout_of(run).run_claim(run.run_id)
    path.parent.mkdir(exist_ok=True)
    path.write_text('{"token": "t", "machine": "another", "pid": 1, "started": 1.0, "lease": 300}', encoding="utf-8")
    os.utime(path, (time.time() - 100,) * 2)
    assert layout_of(run).lease_seconds < 100
    assert read_state(layout_of(run), run).status == "running"
    assert not close_abandoned(layout_of(run).run(run.run_id), layout_of(run).path)
    os.utime(path, (time.time() - 301,) * 2)
    assert read_state(layout_of(run), run).status == LOST
    assert close_abandoned(layout_of(run).run(run.run_id), layout_of(run).path)


def test_a_run_stopped_while_logging_its_scores_is_not_done(run: PreparedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("paribus.pipeline.recorder.table_numbers", stopped)
    with pytest.raises(KeyboardInterrupt):
        recorded(run).finish(None)
    assert read_state(layout_of(run), run).status == LOST


def test_a_done_run_whose_log_has_no_end_is_ended_as_finished(run: PreparedRun) -> None:
    recorder = recorded(run)
    recorder.finish(Failure("infrastructure", "the machine failed"))
    again = recorded(run)
    again.events.close()
    again.events = EventLog(again.directory / "elsewhere.jsonl")  # killed before the end was written
    again.finish(None)
    assert close_abandoned(again.directory, layout_of(run).path)
    events = [json.loads(line) for line in (again.directory / "events.jsonl").read_text("utf-8").splitlines()]
    assert events[-1]["status"] == "FINISHED"
    assert [event["value"] for event in events if event.get("name") == "paribus.failure"][-1] is None


def test_a_run_that_ends_between_two_looks_is_not_lost(run: PreparedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder, held = recorded(run), claimed(run)

    def ends_just_now(path: Path, lease: float) -> bool:
        if path.exists():
            recorder.finish(None)
            path.unlink()
        return False

    with held:
        monkeypatch.setattr(recorder_module, "is_held", ends_just_now)
        assert read_state(layout_of(run), run).status == "done"


@pytest.mark.parametrize("full_disk", [False, True])
def test_a_lost_run_is_recorded_with_the_failure_that_it_noted(run: PreparedRun, full_disk: bool) -> None:
    recorded(run).events.close()
    layout = layout_of(run)
    note = layout.refusal(run.run_id)
    note.parent.mkdir(parents=True, exist_ok=True)
    reason = {"class": "infrastructure", "message": "the file server is away", "full_disk": full_disk}
    note.write_text(json.dumps(reason), encoding="utf-8")
    state = read_state(layout, run)
    assert (state.status, state.full_disk) == (LOST, full_disk)
    assert state.failure == Failure("infrastructure", "the file server is away")
    recorder_module.mark_lost(layout, run.run_id, None)
    ended = read_state(layout, run)
    assert (ended.status, ended.failure) == ("failed", state.failure)
