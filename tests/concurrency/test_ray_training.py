"""A training on two nodes of a Ray cluster."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from ray_training import NAME, STEPS

from support.stages import files
from support.training_inputs import write_inputs

TESTS = Path(__file__).resolve().parents[1]
pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs ray"),
]


def run(*command: str | Path) -> None:
    paths = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `ray_training` made."""
    made = tmp_path_factory.mktemp("training")
    write_inputs(made)
    run(TESTS / "concurrency" / "ray_training.py", made)
    return made


def test_a_training_that_takes_no_steps_yet_ends_when_it_is_asked_to(root: Path) -> None:
    (why, steps), *_ = json.loads((root / "ended.json").read_text())
    assert why == "InterruptedRunError: stopped by a signal while no step was taken"
    assert steps == 0


def test_a_killed_node_ends_the_training_and_is_told_of(root: Path) -> None:
    _, (why, steps), _ = json.loads((root / "ended.json").read_text())
    assert why.startswith("InfrastructureError: ")
    assert "dead or unavailable" in why and why.endswith("(the task of an agent)")
    assert STEPS // 2 <= steps < STEPS


def test_what_lost_a_node_ends_with_the_bytes_of_two_processes_that_were_left_alone(root: Path) -> None:
    *_, (why, _) = json.loads((root / "ended.json").read_text())
    assert why == ""
    run(TESTS / "contract" / "training" / "process_scenarios.py", root, "long")
    assert files(root / NAME / "output") == files(root / "long" / "output")
