"""Event files replayed into a real MLflow store."""

import dataclasses
import json
import math
import os
import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from paribus.config.groups.execution import TrackingConfig
from paribus.tracking.destination import Destination
from paribus.tracking.events import Event, EventLog
from paribus.tracking.mlflow import MlflowSink, batches, cursor_path, mlflow_environment
from paribus.tracking.sync import sync

TRACKING = TrackingConfig(kind="mlflow")


@pytest.fixture
def root(empty_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An output root with an empty store, in a directory with a space, away from the working directory."""
    elsewhere, root = tmp_path / "elsewhere", tmp_path / "output root"
    for directory in (elsewhere, root):
        directory.mkdir()
    monkeypatch.chdir(elsewhere)
    shutil.copy(empty_store, root)
    return root


def write_run(root: Path, run_id: str, *, sweep: str | None = None, steps: int = 5, status: str = "FINISHED") -> Path:
    directory = root / "runs" / run_id
    with EventLog(directory / "events.jsonl") as log:
        log.start(run_id, f"name of {run_id}", {"id": sweep} if sweep else None, dataclasses.asdict(TRACKING))
        log.parameter("seed", 0)
        for step in range(steps):
            log.metric("train/loss", 2.0 - step / 8, step)
        log.tag("artifact.tokens", "a" * 64)
        log.dataset("corpus", "b" * 64, "pydocs")
        (directory / "config.json").write_text("{}")
        log.artifact("config.json", "config")
        log.end(status)
    return directory


def send(root: Path) -> Counter[str]:
    """Sync all runs, none of which may fail; the events that were sent, by kind."""
    runs = sync(root, vars(TRACKING))
    assert not any(run.failed for run in runs)
    return sum((run.events for run in runs), Counter())


def client_of(root: Path) -> Any:
    with mlflow_environment():
        from mlflow import MlflowClient

        return MlflowClient(f"sqlite+pysqlite:///{quote(str(root))}/mlflow.db")


def shown(root: Path, experiment: str = "paribus") -> dict[str, Any]:
    """Runs of the store by run id or, for parents, sweep id."""
    client = client_of(root)
    runs = client.search_runs([client.get_experiment_by_name(experiment).experiment_id])
    by_id = {run.data.tags.get("paribus.run_id") or run.data.tags["paribus.sweep_id"]: run for run in runs}
    assert len(by_id) == len(runs)
    return by_id


def history(root: Path, run: Any, name: str = "train/loss") -> list[tuple[int, float]]:
    return [(metric.step, metric.value) for metric in client_of(root).get_metric_history(run.info.run_id, name)]


def test_everything_in_the_log_is_shown_and_sent_once(root: Path) -> None:
    write_run(root, "one")
    assert send(root) == Counter(metric=5, start=1, parameter=1, tag=1, dataset=1, artifact=1, end=1)
    run = shown(root)["one"]
    assert (run.info.run_name, run.info.status) == ("name of one", "FINISHED")
    assert run.data.params == {"seed": "0"}
    assert run.data.tags["artifact.tokens"] == "a" * 64
    assert history(root, run) == [(step, 2.0 - step / 8) for step in range(5)]
    assert [(entry.dataset.name, entry.dataset.digest) for entry in run.inputs.dataset_inputs] == [("corpus", "b" * 36)]
    assert [file.path for file in client_of(root).list_artifacts(run.info.run_id, "config")] == ["config/config.json"]
    assert (root / "mlartifacts").is_dir()
    assert list(Path.cwd().iterdir()) == []
    assert send(root).total() == 0


def test_a_run_that_failed_and_then_finished_has_no_failure_any_more(root: Path) -> None:
    for failure, status in (("data: a file", "FAILED"), (None, "FINISHED"), ("data: a file", "FAILED")):
        with EventLog(root / "runs" / "again" / "events.jsonl") as log:
            log.start("again", "a run", None, dataclasses.asdict(TRACKING))
            log.tag("paribus.failure", failure)
            if failure is None:
                log.tag("paribus.never_there", None)
            log.end(status)
        send(root)
        run = shown(root)["again"]
        assert (run.data.tags.get("paribus.failure"), run.info.status) == (failure, status)


@pytest.mark.parametrize("damage", ["remove", "rewind"])
def test_a_sync_that_lost_its_cursor_repeats_without_duplicates(root: Path, damage: str) -> None:
    directory = write_run(root, "one", steps=2500)
    send(root)
    run = shown(root)["one"]
    before = history(root, run)
    cursor = cursor_path(directory, Destination.resolve(TRACKING, root))
    if damage == "remove":
        cursor.unlink()
    else:
        cursor.write_text(json.dumps(json.loads(cursor.read_text()) | {"offset": 1000}))
    assert send(root).total() > 2490
    after = shown(root)["one"]
    assert after.info.run_id == run.info.run_id
    assert history(root, after) == before
    assert len(after.inputs.dataset_inputs) == 1


@pytest.mark.parametrize("cursor", ["kept", "lost"])
def test_a_corrected_number_is_the_latest_of_its_run_and_each_is_sent_once(root: Path, cursor: str) -> None:
    directory = write_run(root, "one")
    send(root)
    for values in ((1.0, 9.0), (1.0, 9.0), (0.5, math.nan)):
        with EventLog(directory / "events.jsonl") as log:
            points = {("train/loss", step): value for step, value in zip((3, 4), values, strict=True)}
            log.correct(points, lambda name, step: False)
        if cursor == "lost":
            cursor_path(directory, Destination.resolve(TRACKING, root)).unlink()
        send(root)
        assert send(root).total() == 0
    run = shown(root)["one"]
    assert run.info.status == "FINISHED"
    assert math.isnan(run.data.metrics["train/loss"])
    points = [(step, str(value)) for step, value in history(root, run)]
    assert points[:3] == [(0, "2.0"), (1, "1.875"), (2, "1.75")]
    assert Counter(points[3:]) == Counter([(3, "1.625"), (3, "1.0"), (3, "0.5"), (4, "1.5"), (4, "9.0"), (4, "nan")])


def test_runs_of_a_sweep_have_one_parent_with_the_status_of_all(root: Path) -> None:
    statuses = {
        "finished": ("FINISHED", "FINISHED"),
        "stopped": ("FINISHED", "SCHEDULED"),
        "broken": ("SCHEDULED", "FAILED"),
    }
    for sweep, ends in statuses.items():
        for number, status in enumerate(ends):
            write_run(root, f"{sweep}-{number}", sweep=sweep, status=status)
    send(root)
    runs = shown(root)
    assert len(runs) == 9
    parent = runs["finished"].info.run_id
    assert {runs[f"finished-{number}"].data.tags["mlflow.parentRunId"] for number in (0, 1)} == {parent}
    expected = {"finished": "FINISHED", "stopped": "SCHEDULED", "broken": "FAILED"}
    assert {sweep: runs[sweep].info.status for sweep in statuses} == expected

    write_run(root, "later", sweep="finished", status="KILLED")
    with EventLog(root / "sweeps" / "finished" / "events.jsonl") as log:
        log.start("finished", "table 1", {"id": "finished"}, {})
        log.tag("rows", "3")
    send(root)
    run = shown(root)["finished"]
    assert (run.info.run_id, run.data.tags["rows"], run.info.status) == (parent, "3", "FAILED")


def test_nan_and_infinity_and_long_or_odd_names_arrive(root: Path) -> None:
    directory = root / "runs" / "odd"
    with EventLog(directory / "events.jsonl") as log:
        log.start("odd", "odd", None, {})
        log.metric("loss", math.nan, 0)
        log.metric("loss", math.inf, 1)
        log.parameter("a@b", "x" * 10_000)
        log.parameter("a=b", "second")
    send(root)
    cursor_path(directory, Destination.resolve(TRACKING, root)).unlink()
    send(root)
    run = shown(root)["odd"]
    points = history(root, run, "loss")
    assert math.isnan(points[0][1])
    assert points[1:] == [(1, sys.float_info.max)]
    parameter = run.data.params["a_b"]
    assert len(parameter) == 6000 and parameter.startswith("xxx") and "sha256:" in parameter


def test_an_error_of_a_store_is_reported_without_credentials(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_run(root, "one")
    for uri, message, reported in (
        (
            "postgresql://user:pa/ss@host/db?password=canary",
            "postgresql://user:pa/ss@host/db?password=canary: no answer (postgresql://user:pa/ss@host:5432)",
            "postgresql://host/db: RuntimeError: postgresql://host/db: no answer (postgresql://host:5432)",
        ),
        (
            "mysql://user:p@ss@host/db",
            'could not translate host name "ss@host": dsn user=me password=p@ss',
            'mysql://host/db: RuntimeError: could not translate host name "host": dsn user=me password=...',
        ),
        (
            "http://user:p@ss@host:5000",
            "no answer from http://user:p@ss@host:5000/a@b?token=canary",
            "http://host:5000: RuntimeError: no answer from http://host:5000/a@b?token=...",
        ),
    ):

        def fail(self: MlflowSink, message: str = message) -> None:
            raise RuntimeError(message)

        monkeypatch.setattr(MlflowSink, "_connect", fail)
        (run,) = sync(root, vars(TRACKING) | {"uri": uri})
        assert run.error == reported


def test_a_store_that_was_removed_is_filled_again_and_a_run_deleted_in_mlflow_stays_deleted(
    root: Path, empty_store: Path
) -> None:
    write_run(root, "one", sweep="sweep")
    send(root)
    shutil.copy(empty_store, root)
    assert send(root).total() == 11
    runs = shown(root)
    assert set(runs) == {"one", "sweep"}
    client_of(root).delete_run(runs["one"].info.run_id)
    (run,) = sync(root, vars(TRACKING))
    assert "was deleted in MLflow" in str(run)
    assert set(shown(root)) == {"sweep"}


def test_a_log_that_was_begun_anew_is_sent_whole(root: Path) -> None:
    directory = write_run(root, "one")
    send(root)
    (directory / "events.jsonl").unlink()
    write_run(root, "one")
    assert send(root).total() == 11


def test_a_run_that_mlflow_has_in_hand_elsewhere_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_RUN_ID", "foreign")
    with mlflow_environment():
        assert "MLFLOW_RUN_ID" not in os.environ
    assert os.environ["MLFLOW_RUN_ID"] == "foreign"


def test_a_batch_has_no_more_text_than_mlflow_takes() -> None:
    events = [Event("tag", 0, {"name": "a", "value": "x" * 300_000}, number) for number in range(2)]
    assert [len(batch) for batch in batches(events)] == [1, 1]
