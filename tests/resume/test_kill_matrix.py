"""Kill -9 in every stage: nothing half-made is left, and the same command ends with the same bytes.

Takes minutes, so it has a target of its own: make kill-matrix.
"""

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "end_to_end"))
from command_line import OVERRIDES, command, paribus, write_corpus

STAGES = ("corpus", "vocabulary", "tokens", "embeddings", "neighbours", "order", "checkpoints", "tasks", "scores")
ARGUMENTS = ("run", *OVERRIDES, "ordering=in_context")
DELAYS = (0.0, 0.5, 2.0)

pytestmark = pytest.mark.kill_matrix


def artifacts(directory: Path) -> dict[str, dict[str, Any]]:
    """Stage -> digests of the files of its artefact."""
    records = (directory / "paribus_runs/artifacts").glob("*/*/record.json")
    return {path.parent.parent.name: json.loads(path.read_text(encoding="utf-8"))["files"] for path in records}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("undisturbed")
    write_corpus(directory)
    paribus(directory, *ARGUMENTS)
    assert set(artifacts(directory)) == set(STAGES)
    return directory


@pytest.mark.parametrize("delay", DELAYS)
@pytest.mark.parametrize("stage", STAGES)
def test_a_kill_in_any_stage_costs_nothing_but_time(
    undisturbed: Path, tmp_path: Path, stage: str, delay: float
) -> None:
    shutil.copytree(undisturbed, tmp_path, dirs_exist_ok=True)
    store = tmp_path / "paribus_runs/artifacts"
    for later in STAGES[STAGES.index(stage) :]:
        shutil.rmtree(store / later)
    process = subprocess.Popen(command(ARGUMENTS), cwd=tmp_path, stdout=subprocess.DEVNULL, start_new_session=True)
    while not list((store / "partial").glob(f"{stage}-*")) and process.poll() is None:
        time.sleep(0.01)
    time.sleep(delay)
    process.kill()
    process.wait()
    for path in store.glob("*/*/"):
        if path.parent.name not in ("claims", "partial"):
            assert (path / "record.json").is_file()
    paribus(tmp_path, *ARGUMENTS)
    assert artifacts(tmp_path) == artifacts(undisturbed)
    assert list((store / "partial").iterdir()) == []
