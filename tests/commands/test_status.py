"""`paribus status` without a name or overrides: the sweeps and runs of an output root, from records alone."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from paribus.cli import main
from paribus.commands.status import sweep_state
from paribus.pipeline.prepared import PreparedRun
from paribus.pipeline.root import OutputRoot
from support.recorded_sweeps import finished_sweep, record


@pytest.fixture(name="runs")
def _runs(tmp_path: Path, beside_text: None) -> list[PreparedRun]:
    """A sweep of two finished arms below `paribus_runs`, which share what is made of the text alone."""
    return finished_sweep(tmp_path / "made", "-m", "tokenizer=bpe,scaffold_bpe")


def listed(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main(["status", "--json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def test_a_sweep_is_listed_with_its_runs_below(
    runs: list[PreparedRun], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert main(["status"]) == 0
    heading, sweep, *below = capsys.readouterr().out.splitlines()
    assert len(below) == 2
    assert heading.split() == ["name", "id", "state", "bits/byte", "scores", "age"]
    assert sweep.startswith("tokenizer ")
    assert "done 2/2" in sweep
    assert [(line.split()[0], line.split()[1]) for line in below] == [
        ("bpe", runs[0].run_id[:8]),
        ("scaffold_bpe", runs[1].run_id[:8]),
    ]


def test_states_are_told_apart(runs: list[PreparedRun], capsys: pytest.CaptureFixture[str]) -> None:
    root = OutputRoot.of(runs[0].job.config)
    record(root.path, "-m", "tokenizer=bpe,scaffold_bpe", "seed=0,1")
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


def test_a_run_of_two_sweeps_is_listed_once_below_the_newest(
    runs: list[PreparedRun], capsys: pytest.CaptureFixture[str]
) -> None:
    newest, _ = record(Path("paribus_runs").resolve(), "-m", "tokenizer=bpe", "seed=0,1")
    document = listed(capsys)
    assert document["sweeps"][0]["id"] == newest
    run = next(run for run in document["runs"] if run["id"] == runs[0].run_id)
    assert len(run["sweeps"]) == 2
    assert main(["status"]) == 0
    assert capsys.readouterr().out.count(runs[0].run_id[:8]) == 1


def test_an_empty_root_says_how_to_name_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["status"]) == 0
    assert "nothing has run below" in capsys.readouterr().out
    assert main(["status", "--jsn"]) == 2
    assert list(tmp_path.iterdir()) == []


def test_the_state_of_a_sweep_follows_from_its_runs() -> None:
    states = {
        ("done", "done"): "done",
        ("done", "not started"): "partly",
        ("done", "failed", "running"): "running",
        ("done", "failed", "not started"): "failed",
        ("not started", "not started"): "not started",
    }
    assert {runs: sweep_state(list(runs)) for runs in states} == states
