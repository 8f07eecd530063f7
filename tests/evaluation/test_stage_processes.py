"""Scores and fine-tuning of several processes, which are those of one."""

import json
import os
import signal
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
from safetensors.numpy import load_file, save_file

from support.forked import PATHS, Forked, members_below
from support.stages import files

TIMES = ("device_hours", "_per_second", "seconds", "utilization")
SCENARIOS = Path(__file__).with_name("shared_scoring.py")


def begin(root: Path, name: str, processes: int) -> Forked:
    environment = os.environ | {"OMP_NUM_THREADS": str(processes)}
    environment["PYTHONPATH"] = f"{PATHS}:{SCENARIOS.parent}"
    return Forked([str(SCENARIOS), str(root), name, str(processes)], env=environment, members=2)


def run(root: Path, name: str, processes: int) -> str:
    process = begin(root, name, processes)
    output, errors = process.communicate(timeout=200)
    assert process.returncode == 0, errors
    return output


def reported(path: Path) -> list[tuple[str, float, int]]:
    """All metrics but those of time."""
    found = sorted(map(tuple, json.loads(path.read_text())))
    return [metric for metric in found if not metric[0].endswith(TIMES)]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["texts", "pairs"])
def test_two_processes_score_to_the_bytes_of_one(name: str, tmp_path: Path) -> None:
    for processes in (1, 2):
        assert run(tmp_path, name, processes) == ""
    assert (tmp_path / "evaluation2.work" / "group").is_dir()
    one, two = (files(tmp_path / f"evaluation{processes}") for processes in (1, 2))
    assert {"heldout.parquet", "items.parquet", "statistics.json"} <= one.keys()
    assert one == two
    results = [json.loads((tmp_path / f"evaluation{processes}.json").read_text()) for processes in (1, 2)]
    assert results[0] == results[1]
    assert len(results[0][1]) > 3


@pytest.mark.slow
def test_what_one_of_two_finds_wrong_is_told_and_nothing_is_written(tmp_path: Path) -> None:
    assert run(tmp_path, "texts", 1) == ""
    for path in (tmp_path / "training").glob("step_*/model.safetensors"):
        weights = load_file(path)
        weights["lm_head.weight"] = np.full_like(weights["lm_head.weight"], np.nan)
        save_file(weights, path, {"format": "pt"})
    said = run(tmp_path, "texts", 2)
    assert said.startswith("NumericalError: the model's output is not a number")
    assert "(process " in said
    assert not list((tmp_path / "evaluation2").iterdir())


@pytest.mark.slow
def test_tasks_that_are_fine_tuned_on_at_once_end_with_the_bytes_of_one_after_the_other(tmp_path: Path) -> None:
    for processes in (1, 2):
        assert run(tmp_path, "finetuning", processes) == ""
    taken = sorted(path.stem for path in (tmp_path / "finetuning2.work" / "group").glob("*.taken"))
    assert taken == ["contract_nli", "narrative_qa", "qasper"]
    assert files(tmp_path / "finetuning1") == files(tmp_path / "finetuning2")
    one, two = (reported(tmp_path / f"finetuning{number}.reported.json") for number in (1, 2))
    assert one == two
    assert {name.split("/")[1] for name, _, _ in one} >= set(taken)


@pytest.mark.slow
def test_a_process_that_is_killed_ends_all_and_what_is_finished_stays(tmp_path: Path) -> None:
    process = begin(tmp_path, "finetuning", 2)
    work = tmp_path / "finetuning2.work"
    while not list(work.glob("*.json")):
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    members_below(psutil.Process(process.pid))["0"].kill()
    output, errors = process.communicate(timeout=60)
    if "InfrastructureError" in output:
        assert "was killed from outside" in output, errors
    kept = {path.name: path.stat().st_mtime_ns for path in work.glob("*.json")}
    if not (tmp_path / "finetuning2" / "statistics.json").exists():
        (tmp_path / "finetuning2").rmdir()
        assert run(tmp_path, "finetuning", 2) == ""
    assert {name: (work / name).stat().st_mtime_ns for name in kept} == kept
    assert run(tmp_path, "finetuning", 1) == ""
    assert files(tmp_path / "finetuning1") == files(tmp_path / "finetuning2")


@pytest.mark.slow
def test_tasks_that_are_asked_to_end_save_their_steps_and_go_on_to_the_same_bytes(tmp_path: Path) -> None:
    process, work = begin(tmp_path, "finetuning", 2), tmp_path / "finetuning2.work"
    while not list(work.glob("*/metrics.jsonl")):
        assert process.poll() is None, process.communicate()
        time.sleep(0.005)
    process.send_signal(signal.SIGTERM)
    output, errors = process.communicate(timeout=60)
    if not (tmp_path / "finetuning2" / "statistics.json").exists():
        assert output.startswith("InterruptedRunError: stopped by a signal"), errors
        (tmp_path / "finetuning2").rmdir()
        assert run(tmp_path, "finetuning", 2) == ""
    assert run(tmp_path, "finetuning", 1) == ""
    assert files(tmp_path / "finetuning1") == files(tmp_path / "finetuning2")
