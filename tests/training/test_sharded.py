"""Checkpoints of which each process writes and reads the rows that it has."""

import json
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from paribus.modeling.architecture import WEIGHTS
from paribus.modeling.decoder import huggingface_rows
from paribus.training.checkpoint import Checkpoints
from paribus.training.sharded import StoredTensors
from paribus.training.start import OPTIMIZER, STEP_NAME
from paribus.training.train import write_optimizer, write_weights
from support.stages import files
from support.training_inputs import write_inputs
from support.training_processes import STEPS_BEFORE, begin, begin_group, finish, send_after_steps

ROWS = Path(__file__).with_name("sharded_snapshot.py")


@pytest.fixture(scope="module", params=[2, pytest.param(4, marks=pytest.mark.slow)], ids=["shards", "copies_of_shards"])
def group(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Checkpoints of `sharded_snapshot.py`, which asserts that a model filled from rows goes on as the saved one."""
    root, size = tmp_path_factory.mktemp("rows"), request.param
    for process in begin_group([str(ROWS), str(root)], size):
        finish(process)
    return root


@pytest.mark.parametrize("name", ["llama", "tied", "neox"])
def test_rows_are_exported_to_the_bytes_of_the_gathered_whole(group: Path, name: str, tmp_path: Path) -> None:
    checkpoint, whole = Checkpoints(group / name, frozenset({1}), {}).read(1), group / name / "whole"
    assert sorted(path.name for path in checkpoint.path.glob("*.safetensors")) == [
        f"{kind}_0000{rank}.safetensors" for kind in ("optimizer", "weights") for rank in (0, 1)
    ]
    write_weights(checkpoint, tmp_path)
    write_optimizer(checkpoint, tmp_path)
    for file in (WEIGHTS, OPTIMIZER):
        assert (tmp_path / file).read_bytes() == (whole / file).read_bytes()
    assert (checkpoint.path / "config.json").read_bytes() == (whole / "config.json").read_bytes()
    stored, rows = StoredTensors.of([whole / WEIGHTS], huggingface_rows(checkpoint.architecture)), checkpoint.weights()
    assert stored.shapes == rows.shapes
    assert all(stored.whole(key).equal(rows.whole(key)) for key in rows.shapes)


def test_checkpoint_whose_rows_were_changed_is_passed_over(group: Path, tmp_path: Path) -> None:
    shutil.copytree(group / "llama", tmp_path / "llama")
    checkpoints = Checkpoints(tmp_path / "llama", frozenset({1}), {})
    assert checkpoints.newest(1) is not None
    (tmp_path / "llama" / "step_00000001" / "weights_00001.safetensors").write_bytes(b"torn")
    assert checkpoints.newest(1) is None
    assert checkpoints.damaged == ["step_00000001"]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Has the artefacts of trainings that nothing stopped, of one process and of two that share the weights."""
    directory = tmp_path_factory.mktemp("sharded")
    write_inputs(directory)
    for name in ("alone", "sharded"):
        assert finish(begin(directory, name)) == ""
    return directory


def complete(root: Path, name: str) -> list[int]:
    steps = (STEP_NAME.fullmatch(path.name) for path in (root / name / "work").iterdir())
    return sorted(int(step[1]) for step in steps if step)


def stop(root: Path, name: str) -> int:
    process = begin(root, name)
    send_after_steps(process, signal.SIGTERM, root / name / "work", STEPS_BEFORE)
    assert "InterruptedRunError" in finish(process)
    return complete(root, name)[-1]


@pytest.mark.slow
@pytest.mark.core
def test_stopped_or_killed_sharded_training_ends_with_the_same_bytes(root: Path) -> None:
    """It is killed while rows are written, which costs no checkpoint before."""
    shards = root / "sharded_asked" / "work" / f"step_{stop(root, 'sharded_asked'):08d}"
    assert (shards / "weights_00001.safetensors").exists() and not (shards / WEIGHTS).exists()
    assert "InfrastructureError: process 1 was killed from outside" in finish(begin(root, "sharded_killed"))
    assert complete(root, "sharded_killed") == [25]
    for name in ("sharded_asked", "sharded_killed"):
        assert finish(begin(root, name)) == ""
        assert files(root / name / "output") == files(root / "sharded" / "output")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "first", "then"), [("sharded_then_alone", 2, 1), ("alone_then_sharded", 1, 2)])
def test_training_goes_on_in_another_number_of_processes(root: Path, name: str, first: int, then: int) -> None:
    before = Checkpoints(root / name / "work", frozenset(), {}).read(stop(root, name)).spent
    assert before.device_seconds == pytest.approx(first * before.seconds) and before.seconds > 0
    assert finish(begin(root, name)) == ""
    result = json.loads((root / name / "result.json").read_text(encoding="utf-8"))
    hours = before.later(result["seconds"] - before.seconds, then).device_hours
    assert result["device_hours"] == pytest.approx(hours) and result["seconds"] > before.seconds
    for file in ("step_00000120/model.safetensors", "state/optimizer.safetensors"):
        one, other = (load_file(root / run / "output" / file) for run in ("alone", name))
        assert other.keys() == one.keys()
        assert all(np.allclose(other[key], one[key], rtol=1e-2, atol=1e-4) for key in one)
