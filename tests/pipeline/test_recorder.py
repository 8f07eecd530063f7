"""What a tracker has of a run, and that every cell of a table is a metric of its sweep and of the runs it averages."""

import io
import shutil
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from paribus.checks import compose_command
from paribus.commands.report import compare_runs
from paribus.config.arguments import parse
from paribus.config.compose import Composition
from paribus.config.groups.execution import TrackingConfig
from paribus.pipeline.prepare import describe_sweep, prepare_runs
from paribus.pipeline.prepared import PreparedRun
from paribus.pipeline.root import OutputRoot
from paribus.reporting.compare import logged_row_name
from paribus.tracking.events import EventLog, EventReader
from paribus.tracking.mlflow import mlflow_environment
from paribus.tracking.sync import sync
from support.finished_runs import finish

pytestmark = pytest.mark.usefixtures("without_plots")

SWEEP = ["-m", "scale=tiny", "corpus=pydocs_small", "encoder=merge_rank,longest_first", "seed=0,1,2"]
PARTS = {"": "value"} | {
    f"/{name}": name for name in ("half_width", "difference", "low", "high", "p_value", "p_adjusted")
}
TRACKING, NO_TRACKING = TrackingConfig(kind="mlflow", patience=60.0), TrackingConfig(kind="none")


@pytest.fixture(scope="module")
def root(empty_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An output root with six finished runs, their report, and all of it in MLflow."""
    found = tmp_path_factory.mktemp("root")
    shutil.copy(empty_store, found)
    composition, runs = sweep(found)
    for number, run in enumerate(runs):
        finish(run, number, found / "made")
    assert report(composition, runs)
    assert not any(run.failed for run in sync(found, vars(TRACKING)))
    return found


@cache
def composed(overrides: tuple[str, ...]) -> Composition:
    return compose_command(parse([*overrides, "tracking=none"]))


def sweep(
    root: Path, *more: str, overrides: Sequence[str] = SWEEP, tracking: TrackingConfig = NO_TRACKING
) -> tuple[Composition, list[PreparedRun]]:
    """The sweep below a root; without a tracker, a report starts no process that imports MLflow to send it."""
    found = composed((*overrides, *more))
    placed = [replace(job, config=replace(job.config, root=str(root), tracking=tracking)) for job in found.jobs]
    composition = replace(found, jobs=tuple(placed))
    return composition, prepare_runs(composition)


def report(composition: Composition, runs: Sequence[PreparedRun]) -> bool:
    return compare_runs(composition, runs, Console(file=io.StringIO()))


def client_of(root: Path) -> Any:
    with mlflow_environment():
        from mlflow import MlflowClient

        return MlflowClient(f"sqlite:///{root}/mlflow.db")


def metrics(root: Path) -> dict[str, dict[str, float]]:
    """The latest values of each run by its id, of a sweep by its sweep's."""
    client = client_of(root)
    runs = client.search_runs([client.get_experiment_by_name("paribus").experiment_id])
    return {run.data.tags.get("paribus.run_id") or run.data.tags["paribus.sweep_id"]: run.data.metrics for run in runs}


def cells(root: Path) -> list[dict[str, Any]]:
    (path,) = root.glob("reports/*/report.parquet")
    found: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    return found


def name_of(cell: dict[str, Any]) -> str:
    task = " " not in (cell["tasks"] or " ") and "/" in cell["measure"]
    return f"{cell['tasks']}/{cell['metric']}/{cell['measure'].rpartition('/')[2]}" if task else cell["measure"]


def test_every_number_of_every_cell_is_a_metric_of_the_sweep_s_run(root: Path) -> None:
    composition, runs = sweep(root)
    shown = metrics(root)[describe_sweep(composition, runs).id]
    wanted = {
        f"table/{logged_row_name([cell['encoder']])}/{name_of(cell)}{part}": cell[field]
        for cell in cells(root)
        for part, field in PARTS.items()
        if cell[field] is not None
    }
    assert len([name for name in wanted if name.endswith("/p_adjusted")]) == 1
    assert {name: shown[name] for name in wanted} == wanted


def test_every_cell_is_the_mean_of_a_metric_of_its_runs(root: Path) -> None:
    shown = metrics(root)
    for cell in cells(root):
        names = [name_of(cell)]
        if cell["measure"] == "average":
            names = [f"{task}/{cell['metric']}/mean" for task in cell["tasks"].split(" ")]
            assert len(names) == 2
        own = [shown[run]["table/" + name] for run in cell["run_ids"].split() for name in names]
        assert len(own) == 3 * len(names)
        assert np.mean(own) == pytest.approx(cell["value"], rel=1e-12), cell["measure"]


def test_scores_made_again_with_other_numbers_correct_those_of_their_run(root: Path, tmp_path: Path) -> None:
    again = tmp_path / "root"
    shutil.copytree(root, again)
    _, (run, *_) = sweep(again)
    before = metrics(again)[run.run_id]
    shutil.rmtree(OutputRoot.of(run.job.config).store.path("evaluation", run.nodes["evaluation"].key))
    finish(run, 17, again / "made_again")
    assert not any(run.failed for run in sync(again, vars(TRACKING)))
    after = metrics(again)[run.run_id]
    fresh = tmp_path / "fresh"
    _, (same_run, *_) = sweep(fresh)
    finish(same_run, 17, fresh / "made")
    wanted = table_of(OutputRoot.of(same_run.job.config).run(same_run.run_id))
    assert {name: after[name] for name in wanted} == wanted
    assert {name for name in wanted if before[name] != after[name]} >= {"table/boolq/acc/mean", "table/bits_per_byte"}


def test_metrics_that_a_repeated_run_lacks_become_nan(root: Path, tmp_path: Path) -> None:
    again = tmp_path / "root"
    shutil.copytree(root, again)
    _, (run, *_) = sweep(again)
    layout = OutputRoot.of(run.job.config)
    with EventLog(layout.run(run.run_id) / "events.jsonl") as events:
        events.metric("table/gone/acc/mean", 0.5, 125)
        events.metric("table/boolq/acc/mean", 0.5, 500)
    wanted = metrics(again)[run.run_id]["table/boolq/acc/mean"]
    finish(run, 0, again / "made_again")
    assert not any(run.failed for run in sync(again, vars(TRACKING)))
    after = metrics(again)[run.run_id]
    assert after["table/boolq/acc/mean"] == wanted
    assert np.isnan(after["table/gone/acc/mean"])


def table_of(run_directory: Path) -> dict[str, float]:
    """The numbers of the table that the log of a run says last."""
    events = EventReader(run_directory / "events.jsonl").poll()
    found = {event.fields["name"]: event.fields["value"] for event in events if event.event == "metric"}
    return {name: value for name, value in found.items() if name.startswith("table/")}
