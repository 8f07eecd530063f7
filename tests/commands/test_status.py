"""`paribus status` without a name or overrides: the sweeps and runs of an output root, from records alone."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from paribus.cli import main
from paribus.pipeline.prepared import PreparedRun
from paribus.pipeline.root import OutputRoot
from support.recorded_sweeps import finished_sweep, record_sweep


@pytest.fixture(name="runs")
def _runs(tmp_path: Path, in_directory_with_text: None) -> list[PreparedRun]:
    """A sweep of two finished arms below `paribus_runs`, which share what is made of the text alone."""
    return finished_sweep(tmp_path / "made", "-m", "tokenizer=bpe,scaffold_bpe")


def listed(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main(["status", "--json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def test_states_are_told_apart(runs: list[PreparedRun], capsys: pytest.CaptureFixture[str]) -> None:
    root = OutputRoot.of(runs[0].job.config)
    record_sweep(root.path, "-m", "tokenizer=bpe,scaffold_bpe", "seed=0,1")
    path = root.run(runs[1].run_id) / "run.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    content |= {"status": "interrupted", "failure": {"class": "interrupted", "message": "stopped by a signal"}}
    path.write_text(json.dumps(content), encoding="utf-8")
    document = listed(capsys)
    states = {run["id"]: run["state"] for run in document["runs"]}
    assert [states.pop(run.run_id) for run in runs] == ["done", "interrupted"]
    assert set(states.values()) == {"not started"}
    assert [(sweep["state"], sweep["done"]) for sweep in document["sweeps"]] == [("partly", 1), ("partly", 1)]
    why = {run["id"]: run["why"] for run in document["runs"]}
    assert why[runs[1].run_id] == "stopped by a signal"
    assert main(["status"]) == 0
    assert f"{runs[1].run_id[:8]} interrupted: stopped by a signal" in capsys.readouterr().out


def test_a_run_in_hand_is_running_and_one_whose_process_is_gone_has_failed(
    runs: list[PreparedRun], capsys: pytest.CaptureFixture[str]
) -> None:
    root, run_id = OutputRoot.of(runs[0].job.config), runs[0].run_id
    path = root.run(run_id) / "run.json"
    path.write_text(path.read_text(encoding="utf-8").replace('"status": "done"', '"status": "running"'), "utf-8")
    states = {run["id"]: run["state"] for run in listed(capsys)["runs"]}
    assert states[run_id] == "failed"
    claim = root.store.claim("a", "b")
    assert claim is not None
    with claim:
        root.run_claim(run_id).parent.mkdir(exist_ok=True)
        shutil.copy(claim.path, root.run_claim(run_id))
        states = {run["id"]: run["state"] for run in listed(capsys)["runs"]}
    assert states[run_id] == "running"


def test_a_run_whose_artefact_is_gone_is_incomplete(
    runs: list[PreparedRun], capsys: pytest.CaptureFixture[str]
) -> None:
    node = runs[0].nodes["training"]
    shutil.rmtree(OutputRoot.of(runs[0].job.config).store.path(node.name, node.key))
    states = {run["id"]: run["state"] for run in listed(capsys)["runs"]}
    assert (states[runs[0].run_id], states[runs[1].run_id]) == ("incomplete", "done")
