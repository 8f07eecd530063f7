"""Runs to be tracked, and what MLflow shows of them."""

from pathlib import Path
from typing import Any

from paribus.tracking.events import EventLog
from paribus.tracking.mlflow import mlflow_environment


def write_run(root: Path, run_id: str, steps: int = 50) -> Path:
    directory = root / "runs" / run_id
    with EventLog(directory / "events.jsonl") as log:
        log.start(run_id, run_id, {"id": "sweep"}, {})
        for step in range(steps):
            log.metric("loss", float(step), step)
        (directory / "config.json").write_text("{}")
        log.artifact("config.json")
        log.end("FINISHED")
    return directory


def steps_shown(uri: str) -> dict[str, list[int]]:
    """Steps of the metric `loss` by run; the parent of the sweep must be there once."""
    with mlflow_environment():
        from mlflow import MlflowClient

        client: Any = MlflowClient(uri)
        runs = client.search_runs([client.get_experiment_by_name("paribus").experiment_id])
        assert [run.data.tags.get("paribus.sweep_id") for run in runs].count("sweep") == 1
        children = [run for run in runs if "paribus.run_id" in run.data.tags]
        assert len({run.data.tags["paribus.run_id"] for run in children}) == len(children)
        return {
            run.data.tags["paribus.run_id"]: [
                metric.step for metric in client.get_metric_history(run.info.run_id, "loss")
            ]
            for run in children
        }
