"""A command whose training is asked for checkpoints by signals, as schedulers do before the end of a job's time."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from support.command_line import OVERRIDES, command, paribus, write_text_files
from support.waiting import wait_until

pytestmark = pytest.mark.slow

ARGUMENTS = (
    *OVERRIDES,
    "evaluation=heldout",
    "budget=equal_steps",
    "budget.steps=400",
    "training.checkpoint_every=100000",
    "training.checkpoints=1",
    "training.keep_checkpoints=1",
    "evaluation.last_checkpoints=1",
)


def steps_done(directory: Path) -> int:
    found = list(directory.glob("paribus_runs/artifacts/partial/training-*/work/metrics.jsonl"))
    return found[0].read_bytes().count(b"\n") if found else 0


def saved(directory: Path) -> list[int]:
    found = directory.glob("paribus_runs/artifacts/partial/training-*/work/step_*")
    return sorted(int(path.name[5:]) for path in found if path.suffix == "")


def stops(directory: Path) -> list[str]:
    """What the log of the training says of its end, and of every traceback the first line."""
    (log,) = directory.glob("paribus_runs/runs/*/logs/training.log")
    lines = log.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.startswith(("interrupted: ", "Traceback ", "paribus.errors."))]


@pytest.mark.core
def test_a_command_passes_on_what_schedulers_ask_and_a_stopped_training_goes_on(tmp_path: Path) -> None:
    write_text_files(tmp_path)
    arguments = [word for word in ("run", *ARGUMENTS) if not word.startswith("evaluation.shots")]
    process = subprocess.Popen(
        command(arguments), cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    wait_until(lambda: steps_done(tmp_path) >= 10, process)
    process.send_signal(signal.SIGUSR1)
    wait_until(lambda: saved(tmp_path), process)
    (asked,) = saved(tmp_path)
    wait_until(lambda: steps_done(tmp_path) >= asked + 10, process)
    process.send_signal(signal.SIGTERM)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 130, said
    first, last = saved(tmp_path)
    assert first == asked < last < 400
    (record,) = tmp_path.glob("paribus_runs/runs/*/run.json")
    assert json.loads(record.read_text())["failure"]["class"] == "interrupted"
    assert stops(tmp_path) == [f"interrupted: stopped by a signal after step {last}, whose checkpoint is written"]
    paribus(tmp_path, *arguments)
    assert json.loads(record.read_text())["status"] == "done"


@pytest.mark.parametrize(("processes", "by_terminal"), [(2, False), (2, True), (1, False)])
def test_a_stopped_sweep_of_several_processes_saves_what_they_train(
    tmp_path: Path, processes: int, by_terminal: bool
) -> None:
    """By Ctrl-C the processes of joblib get the signal too; by a scheduler the command alone."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a suite in the background may ignore it
    write_text_files(tmp_path)
    pool = ("hydra/launcher=joblib", f"hydra.launcher.n_jobs={processes}", "seed=0,1,2", "budget.steps=4000")
    arguments = [word for word in ("run", "-m", *ARGUMENTS, *pool) if not word.startswith("evaluation.shots")]
    process = subprocess.Popen(
        command(arguments),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    logs = "paribus_runs/artifacts/partial/training-*/work/metrics.jsonl"
    wait_until(lambda: [b"\n" in log.read_bytes() for log in tmp_path.glob(logs)] == [True] * processes, process)
    if by_terminal:
        os.killpg(process.pid, signal.SIGINT)
    else:
        process.send_signal(signal.SIGTERM)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert len(saved(tmp_path)) == processes
    records = [json.loads(path.read_text()) for path in tmp_path.glob("paribus_runs/runs/*/run.json")]
    assert [record["failure"]["class"] for record in records] == ["interrupted"] * processes
    assert ("not started: the command was stopped" in said) is (processes == 2)
    assert not list(tmp_path.glob("paribus_runs/sweeps/*/stopped-*"))
