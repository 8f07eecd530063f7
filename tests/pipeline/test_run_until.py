"""Runs that end after a stage: which artefacts are made, what the record says, and that the rest is made later."""

import io
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from paribus.config.groups.execution import TrackingConfig
from paribus.config.schema import RunConfig
from paribus.errors import DataError
from paribus.pipeline import run as running
from paribus.pipeline.display import Display
from paribus.pipeline.prepared import PreparedRun
from paribus.pipeline.recorder import is_done, read_state
from paribus.pipeline.root import OutputRoot
from paribus.pipeline.run import perform
from paribus.store.provenance import loaded_code
from support.plans import planned_run, run_stages_here

BEFORE_TRAINING = {"corpus", "vocabulary", "tokens", "order", "contexts"}
Made = Callable[[str | None], list[str]]


@pytest.fixture
def run(tmp_path: Path) -> PreparedRun:
    return planned_run(tmp_path / "root", tracking=TrackingConfig(kind="none"))


@pytest.fixture
def make(run: PreparedRun, monkeypatch: pytest.MonkeyPatch) -> Made:
    """Performs the run until a stage; the stages that this makes."""
    made = run_stages_here(monkeypatch)

    def until(stage: str | None) -> list[str]:
        made.clear()
        assert perform(asked(run, stage), Display(Console(file=io.StringIO())), loaded_code()) is None
        return list(made)

    return until


def asked(run: PreparedRun, until: str | None) -> RunConfig:
    return replace(run.job.config, until=until)  # type: ignore[arg-type]


def root_of(run: PreparedRun) -> OutputRoot:
    return OutputRoot.of(run.job.config)


def done(run: PreparedRun, until: str | None) -> bool:
    return is_done(run.run_id, run.nodes, root_of(run), until)


def events(run: PreparedRun) -> list[dict[str, Any]]:
    path = root_of(run).run(run.run_id) / "events.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def states(run: PreparedRun) -> list[str]:
    return [event.get("status", "start") for event in events(run) if event["event"] in ("start", "end")]


def stopped_after(run: PreparedRun) -> list[str | None]:
    return [event["value"] for event in events(run) if event.get("name") == "paribus.stopped_after"]


def test_a_run_stops_after_its_stage_and_the_same_command_makes_the_rest(run: PreparedRun, make: Made) -> None:
    assert set(make("contexts")) == BEFORE_TRAINING
    state = read_state(root_of(run), run)
    assert (state.status, state.shown, state.failure) == ("stopped", "stopped after contexts", None)
    assert (states(run), stopped_after(run)) == (["start", "SCHEDULED"], ["contexts"])
    assert make("training") == ["training"]
    assert read_state(root_of(run), run).shown == "stopped after training"
    assert set(make(None)) == {"tasks", "prompts", "evaluation"}
    assert read_state(root_of(run), run).shown == "done"
    assert states(run) == ["start", "SCHEDULED", "start", "SCHEDULED", "start", "FINISHED"]
    assert stopped_after(run) == ["contexts", None, "training", None]


def test_a_run_that_failed_later_stays_failed(run: PreparedRun, monkeypatch: pytest.MonkeyPatch, make: Made) -> None:
    make("training")
    execute = running.execute

    def fails(job: dict[str, Any], *others: Any, **options: Any) -> dict[str, Any]:
        if job["stage"] == "evaluation":
            raise DataError("no items")
        return dict(execute(job, *others, **options))

    monkeypatch.setattr(running, "execute", fails)
    failure = perform(asked(run, None), Display(Console(file=io.StringIO())), loaded_code())
    assert failure is not None and failure.stage == "evaluation"
    assert done(run, "training") and not done(run, "evaluation") and not done(run, None)
    assert make("training") == []
    assert read_state(root_of(run), run).status == "failed"


def test_a_stage_of_a_finished_run_that_until_makes_again_leaves_the_whole_record(run: PreparedRun, make: Made) -> None:
    """A table reads of a run what its record names."""
    make(None)
    root, node = root_of(run), run.nodes["contexts"]
    for path in (found := root.store.path(node.name, node.key)).rglob("*"):
        path.chmod(0o755)
    found.chmod(0o755)
    shutil.rmtree(found)
    assert make("contexts") == ["contexts"]
    record = json.loads((root.run(run.run_id) / "run.json").read_text(encoding="utf-8"))
    assert record["status"] == "done"
    assert record["stages"].keys() == run.nodes.keys()
