"""Maps and a training on two nodes of a Ray cluster, one of which is killed."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ray_nodes import embeddings_context
from ray_training import NAME, STEPS, STRAIGHT

from paribus.ordering import embeddings as embeddings_stage
from support.stages import files
from support.training_inputs import write_inputs

TESTS = Path(__file__).resolve().parents[1]
pytestmark = [pytest.mark.slow, pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs ray")]


def run(*command: str | Path) -> None:
    paths = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `ray_nodes` made."""
    made = tmp_path_factory.mktemp("nodes")
    run(Path(__file__).with_name("ray_nodes.py"), made)
    return made


def test_a_killed_node_costs_its_shards_only(directory: Path) -> None:
    found: dict[str, Any] = json.loads((directory / "result.json").read_text())
    assert found["workers"] == 2
    assert found["results"] == [number**2 for number in range(24)]
    assert sorted(found["executions"]) == [1] * 23 + [2]


def test_a_killed_node_leaves_no_trace_in_an_artefact(directory: Path, tmp_path: Path) -> None:
    context = embeddings_context(tmp_path, "alone")
    embeddings_stage.build(context)
    assert files(directory / "output") == files(context.output)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `ray_training` made."""
    made = tmp_path_factory.mktemp("training")
    write_inputs(made)
    run(Path(__file__).with_name("ray_training.py"), made)
    return made


def test_a_training_that_takes_no_steps_yet_ends_when_it_is_asked_to(root: Path) -> None:
    (why, steps), *_ = json.loads((root / "ended.json").read_text())
    assert why == "InterruptedRunError: stopped by a signal while no step was taken"
    assert steps == 0


def test_a_killed_node_ends_the_training_and_is_told_of(root: Path) -> None:
    _, (why, steps), _ = json.loads((root / "ended.json").read_text())
    assert why.startswith("InfrastructureError: ")
    # Whichever notices first: Ray, or the process on the other node, which waits for the lost one by gloo.
    assert ("dead or unavailable" in why and why.endswith("(the task of an agent)")) or "gloo" in why
    assert STEPS // 2 <= steps < STEPS


def test_a_training_that_lost_a_node_ends_with_the_bytes_of_an_undisturbed_one(root: Path) -> None:
    *_, (why, _) = json.loads((root / "ended.json").read_text())
    assert why == ""
    assert files(root / NAME / "output") == files(root / STRAIGHT / "output")
