"""Training that is killed and run again ends bit for bit where training straight through ends."""

import itertools
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
from training_scenarios import POINTS, SKIPPING

from support.stages import files
from support.training_processes import PATHS

SCENARIOS = Path(__file__).with_name("training_scenarios.py")
RESUMED = (*POINTS, "twice", "damaged", "skipping", "padded", "pairs")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("training")
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": PATHS}
    done = subprocess.run(
        [sys.executable, SCENARIOS, directory], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return directory


def straight(root: Path, name: str) -> Path:
    """The run that trained straight through as `name` is configured."""
    return root / (f"{name}_straight" if name in ("padded", "skipping", "pairs") else "straight")


def without_seconds(result: Path) -> dict[str, object]:
    values = json.loads(result.read_text())
    return {
        name: value for name, value in values.items() if name not in ("seconds", "device_hours", "damaged_checkpoints")
    }


@pytest.mark.parametrize("name", RESUMED)
def test_a_killed_run_resumes_to_the_same_bytes(root: Path, name: str) -> None:
    expected, found = files(straight(root, name) / "output"), files(root / name / "output")
    assert list(found) == list(expected)
    assert [path for path in expected if found[path] != expected[path]] == []
    assert without_seconds(root / name / "result.json") == without_seconds(straight(root, name) / "result.json")


@pytest.mark.parametrize("name", ["seldom", "often", "often_then_seldom"])
def test_how_often_a_job_saves_what_it_goes_on_from_changes_no_byte_of_the_artefact(root: Path, name: str) -> None:
    assert files(root / name / "output") == files(root / "straight" / "output")
    assert without_seconds(root / name / "result.json") == without_seconds(root / "straight" / "result.json")


def test_skipped_steps_are_those_above_the_limit_and_are_counted(root: Path) -> None:
    limit = SKIPPING.loss_limit * math.log(257)
    lines = [json.loads(line) for line in (root / "skipping/output/metrics.jsonl").read_text().splitlines()]
    bad = [line["train/loss"] > limit for line in lines]
    assert 0 < sum(bad) < len(bad)
    assert [line.get("train/skipped_steps", 0) for line in lines] == list(itertools.accumulate(bad))
    assert json.loads((root / "skipping" / "result.json").read_text())["skipped_steps"] == sum(bad)
