"""Two nodes of a Ray cluster, one of which is killed in the middle of a map."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ray_nodes import embeddings_context

from paribus.ordering.embed import build as embeddings_stage
from support.stages import files

TESTS = Path(__file__).resolve().parents[1]
pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs ray"),
]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `ray_nodes` made."""
    made = tmp_path_factory.mktemp("nodes")
    paths = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
    script = [sys.executable, str(TESTS / "concurrency" / "ray_nodes.py"), str(made)]
    done = subprocess.run(script, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
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
