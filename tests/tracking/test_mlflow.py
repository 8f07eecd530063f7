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
from paribus.errors import ConfigurationError
from paribus.tracking.destination import Destination
from paribus.tracking.events import EventLog
from paribus.tracking.mlflow import MlflowSink, cursor_path, mlflow_environment
from paribus.tracking.sync import main, sync

TRACKING = TrackingConfig(kind="mlflow")


@pytest.fixture
def root(empty_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An output root with an empty store, in a directory with a space, away from the working directory."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    made = tmp_path / "output root"
    made.mkdir()
    shutil.copy(empty_store, made)
    return made


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


def test_a_run_that_failed_and_then_finished_has_no_failure_any_more(root: Path) -> None:
    directory = root / "runs" / "again"
    for failure, status in (("data: a file", "FAILED"), (None, "FINISHED"), ("data: a file", "FAILED")):
        with EventLog(directory / "events.jsonl") as log:
            log.start("again", "a run", None, dataclasses.asdict(TRACKING))
            if failure is None:
                log.tag("paribus.failure", None)
                log.tag("paribus.never_there", None)
            else:
                log.tag("paribus.failure", failure)
            log.end(status)
        assert not any(run.failed for run in sync(root, vars(TRACKING)))
        run = shown(root)["again"]
        assert (run.data.tags.get("paribus.failure"), run.info.status) == (failure, status)


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


def test_everything_in_the_log_is_shown(root: Path) -> None:
    write_run(root, "one")
    report = sync(root, vars(TRACKING))
    assert not any(run.failed for run in report)
    assert report[0].events == Counter(metric=5, start=1, parameter=1, tag=1, dataset=1, artifact=1, end=1)
    run = shown(root)["one"]
    assert run.info.run_name == "name of one"
    assert run.info.status == "FINISHED"
    assert run.data.params == {"seed": "0"}
    assert run.data.tags["artifact.tokens"] == "a" * 64
    assert history(root, run) == [(step, 2.0 - step / 8) for step in range(5)]
    assert [(entry.dataset.name, entry.dataset.digest) for entry in run.inputs.dataset_inputs] == [("corpus", "b" * 36)]
    assert [file.path for file in client_of(root).list_artifacts(run.info.run_id, "config")] == ["config/config.json"]
    assert (root / "mlartifacts").is_dir()
    assert list(Path.cwd().iterdir()) == []


def test_a_second_sync_sends_nothing(root: Path) -> None:
    write_run(root, "one")
    assert sum(run.events.total() for run in sync(root, vars(TRACKING))) == 11
    assert sum(run.events.total() for run in sync(root, vars(TRACKING))) == 0


@pytest.mark.parametrize("damage", ["remove", "rewind"])
def test_a_sync_that_lost_its_cursor_repeats_without_duplicates(root: Path, damage: str) -> None:
    directory = write_run(root, "one", steps=2500)
    sync(root, vars(TRACKING))
    run = shown(root)["one"]
    before = history(root, run)
    cursor = cursor_path(directory, Destination.resolve(TRACKING, root))
    if damage == "remove":
        cursor.unlink()
    else:
        cursor.write_text(json.dumps(json.loads(cursor.read_text()) | {"offset": 1000}))
    report = sync(root, vars(TRACKING))
    assert not any(run.failed for run in report)
    assert sum(run.events.total() for run in report) > 2490
    after = shown(root)["one"]
    assert after.info.run_id == run.info.run_id
    assert history(root, after) == before
    assert len(after.inputs.dataset_inputs) == 1


@pytest.mark.parametrize("cursor", ["kept", "lost"])
def test_a_corrected_number_is_the_latest_of_its_run_and_each_is_sent_once(root: Path, cursor: str) -> None:
    directory = write_run(root, "one")
    sync(root, vars(TRACKING))
    for values in ((1.0, 9.0), (1.0, 9.0), (0.5, math.nan)):
        with EventLog(directory / "events.jsonl") as log:
            points = {("train/loss", step): value for step, value in zip((3, 4), values, strict=True)}
            log.correct(points, lambda name, step: False)
        if cursor == "lost":
            cursor_path(directory, Destination.resolve(TRACKING, root)).unlink()
        assert not any(run.failed for run in sync(root, vars(TRACKING)))
        assert sum(run.events.total() for run in sync(root, vars(TRACKING))) == 0
    run = shown(root)["one"]
    assert run.info.status == "FINISHED"
    assert math.isnan(run.data.metrics["train/loss"])
    told = [(step, str(value)) for step, value in history(root, run)]
    assert told[:3] == [(0, "2.0"), (1, "1.875"), (2, "1.75")]
    assert Counter(told[3:]) == Counter([(3, "1.625"), (3, "1.0"), (3, "0.5"), (4, "1.5"), (4, "9.0"), (4, "nan")])


def test_what_is_logged_after_a_sync_is_added(root: Path) -> None:
    write_run(root, "one", steps=3, status="FAILED")
    sync(root, vars(TRACKING))
    assert shown(root)["one"].info.status == "FAILED"
    write_run(root, "one", steps=5)
    report = sync(root, vars(TRACKING))
    assert report[0].events == Counter(start=1, metric=2, end=1)
    run = shown(root)["one"]
    assert run.info.status == "FINISHED"
    assert [step for step, _ in history(root, run)] == [0, 1, 2, 3, 4]


def test_runs_of_a_sweep_have_one_parent_that_fails_when_one_of_them_does(root: Path) -> None:
    write_run(root, "one", sweep="sweep")
    write_run(root, "two", sweep="sweep")
    sync(root, vars(TRACKING))
    runs = shown(root)
    parent = runs["sweep"]
    assert {runs[name].data.tags["mlflow.parentRunId"] for name in ("one", "two")} == {parent.info.run_id}
    assert parent.info.status == "FINISHED"
    write_run(root, "three", sweep="sweep", status="KILLED")
    with EventLog(root / "sweeps" / "sweep" / "events.jsonl") as log:
        log.start("sweep", "table 1", {"id": "sweep"}, {})
        log.tag("rows", "3")
    sync(root, vars(TRACKING))
    runs = shown(root)
    assert len(runs) == 4
    assert runs["sweep"].info.run_id == parent.info.run_id
    assert runs["sweep"].data.tags["rows"] == "3"
    assert runs["sweep"].info.status == "FAILED"


def test_a_sweep_whose_runs_stopped_early_is_neither_finished_nor_failed(root: Path) -> None:
    write_run(root, "one", sweep="sweep")
    write_run(root, "two", sweep="sweep", status="SCHEDULED")
    sync(root, vars(TRACKING))
    assert {name: run.info.status for name, run in shown(root).items()} == {
        "one": "FINISHED",
        "two": "SCHEDULED",
        "sweep": "SCHEDULED",
    }
    write_run(root, "three", sweep="sweep", status="FAILED")
    sync(root, vars(TRACKING))
    assert shown(root)["sweep"].info.status == "FAILED"


def test_an_inherited_mlflow_run_changes_nothing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MLFLOW_RUN_ID", "MLFLOW_EXPERIMENT_ID"):
        monkeypatch.setenv(name, "0" * 32)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://localhost:1")
    write_run(root, "one", sweep="sweep")
    assert not any(run.failed for run in sync(root, vars(TRACKING)))
    assert set(shown(root)) == {"one", "sweep"}
    assert os.environ["MLFLOW_RUN_ID"] == "0" * 32
    assert "MLFLOW_DISABLE_TELEMETRY" not in os.environ


def test_nan_and_infinity_and_long_or_odd_names_arrive(root: Path) -> None:
    with EventLog(root / "runs" / "odd" / "events.jsonl") as log:
        log.start("odd", "odd", None, {})
        log.metric("loss", math.nan, 0)
        log.metric("loss", math.inf, 1)
        log.parameter("a@b", "x" * 10_000)
        log.parameter("a=b", "second")
    for _ in range(2):
        (root / "runs" / "odd" / f"tracking-{Destination.resolve(TRACKING, root).key}.json").unlink(missing_ok=True)
        assert not any(run.failed for run in sync(root, vars(TRACKING)))
    run = shown(root)["odd"]
    points = history(root, run, "loss")
    assert math.isnan(points[0][1])
    assert points[1:] == [(1, sys.float_info.max)]
    assert len(run.data.params["a_b"]) == 6000
    assert run.data.params["a_b"].startswith("xxx")
    assert "sha256:" in run.data.params["a_b"]


@pytest.mark.parametrize(
    ("uri", "said", "told"),
    [
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
    ],
)
def test_an_error_of_a_store_is_told_without_credentials(
    root: Path, monkeypatch: pytest.MonkeyPatch, uri: str, said: str, told: str
) -> None:
    def fail(self: MlflowSink) -> None:
        raise RuntimeError(said)

    monkeypatch.setattr(MlflowSink, "_connect", fail)
    write_run(root, "one")
    (run,) = sync(root, vars(TRACKING) | {"uri": uri})
    assert run.error == told


def test_a_store_that_was_removed_is_made_again_and_filled(root: Path, empty_store: Path) -> None:
    write_run(root, "one", sweep="sweep")
    sync(root, vars(TRACKING))
    shutil.copy(empty_store, root)
    assert sum(run.events.total() for run in sync(root, vars(TRACKING))) == 11
    assert set(shown(root)) == {"one", "sweep"}


def test_a_run_deleted_in_mlflow_stays_deleted(root: Path) -> None:
    write_run(root, "one")
    sync(root, vars(TRACKING))
    client_of(root).delete_run(shown(root)["one"].info.run_id)
    (run,) = sync(root, vars(TRACKING))
    assert "was deleted in MLflow" in str(run)
    assert shown(root) == {}


def test_the_root_may_move_before_it_is_synced(root: Path, tmp_path: Path) -> None:
    write_run(root, "one")
    moved = tmp_path / "moved"
    root.rename(moved)
    (run,) = sync(moved, {})
    assert run.problems == ()
    found = shown(moved)["one"]
    assert [file.path for file in client_of(moved).list_artifacts(found.info.run_id)] == ["config"]


def test_the_verb_prints_a_line_a_run_and_refuses_typos(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(root, "one", steps=2)
    with EventLog(root / "runs" / "silent" / "events.jsonl") as log:
        log.start("silent", "silent", None, {"kind": "none"})
    assert main([f"root={root}", "tracking.experiment=mine"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == "one: 8 events sent (1 artifact, 1 dataset, 1 end, 2 metric, 1 parameter, 1 start, 1 tag)"
    assert second.startswith("silent: skipped: its tracking.kind is none")
    assert set(shown(root, "mine")) == {"one"}
    with pytest.raises(ConfigurationError, match=r"did you mean tracking\.uri"):
        main([f"root={root}", "tracking.url=x"])
    with pytest.raises(ConfigurationError, match="is no directory"):
        main(["root=nowhere"])
