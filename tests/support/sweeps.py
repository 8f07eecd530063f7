"""Runs of the sweep that all tests read, by their labels."""

import json
from pathlib import Path


def run_of(root: Path, label: str) -> str:
    """Identifier of the run with this label, such as "bpe standard", of the oldest sweep of a root."""
    paths = sorted((root / "sweeps").glob("*/sweep.json"), key=lambda path: path.stat().st_mtime)
    sweep = json.loads(paths[0].read_text(encoding="utf-8"))
    return str(next(run["run_id"] for run in sweep["runs"] if run["label"] == label))


def training_of(root: Path, label: str) -> Path:
    """Artefact of the training of that run."""
    record = json.loads((root / "runs" / run_of(root, label) / "run.json").read_text(encoding="utf-8"))
    return root / "artifacts/training" / record["stages"]["training"]["key"]


def trained(root: Path, label: str) -> Path:
    """Last checkpoint of that run."""
    return max(training_of(root, label).glob("step_*"))
