"""Several processes that train one model."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from safetensors.numpy import load_file

from stage_support import files
from training_inputs import write_inputs

SCENARIOS = Path(__file__).with_name("process_scenarios.py")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("processes")
    write_inputs(directory)
    return directory


def trained(root: Path, name: str) -> str:
    """What running a scenario prints on standard output."""
    environment = os.environ | {"OMP_NUM_THREADS": "2", "PYTHONPATH": str(SCENARIOS.parents[1])}
    command = [sys.executable, str(SCENARIOS), str(root), name]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def said(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def metrics(root: Path, name: str) -> list[dict[str, float]]:
    lines = (root / name / "output" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def one(root: Path) -> Path:
    assert trained(root, "one") == ""
    return root / "one"


@pytest.mark.parametrize("name", ["ddp", "fsdp"])
def test_two_processes_train_as_one_does_up_to_rounding(root: Path, one: Path, name: str) -> None:
    assert trained(root, name) == ""
    for alone, together in zip(metrics(root, "one"), metrics(root, name), strict=True):
        assert together.keys() == alone.keys()
        assert list(together.values()) == pytest.approx(list(alone.values()), rel=1e-5)
    outputs = one / "output", root / name / "output"
    assert outputs[0].joinpath("contexts.json").read_bytes() == outputs[1].joinpath("contexts.json").read_bytes()
    for file in ("step_00000014/model.safetensors", "state/optimizer.safetensors"):
        alone, together = (load_file(output / file) for output in outputs)
        assert together.keys() == alone.keys()
        assert all(np.allclose(together[key], alone[key], rtol=1e-3, atol=1e-5) for key in alone)
    assert said(root / name / "result.json")["devices"] == 2
    reported = [[(name, step) for name, _, step in said(run / "reported.json")] for run in (one, root / name)]
    assert reported[0] == reported[1]


def test_processes_that_cannot_share_a_batch_are_refused(root: Path) -> None:
    refused = trained(root, "too_many")
    assert "training.global_batch is 4, which 3 processes cannot share evenly" in refused
    assert not (root / "too_many" / "work" / "group").exists()


def test_a_killed_process_ends_all_and_resuming_ends_with_the_same_bytes(root: Path) -> None:
    assert "process 1 was killed (signal 9)" in trained(root, "killed")
    commands = [" ".join(process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"])]
    assert not [command for command in commands if "paribus.training.rank" in command and str(root) in command]
    assert not list((root / "killed" / "output").iterdir())
    assert list((root / "killed" / "work").glob("step_*"))
    assert trained(root, "killed") == trained(root, "long") == ""
    assert files(root / "killed" / "output") == files(root / "long" / "output")
