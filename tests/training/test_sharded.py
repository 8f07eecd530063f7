"""Checkpoints of which each process writes and reads the rows that it has."""

import json
import os
import shutil
import signal
import socket
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
from support.forked import PATHS, Forked
from support.stages import files
from support.training_inputs import write_inputs
from support.training_processes import begin, finish, send_in_a_step

ROWS = Path(__file__).with_name("sharded_snapshot.py")


@pytest.fixture(scope="module", params=[2, 4], ids=["shards", "copies_of_shards"])
def group(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    size = str(request.param)
    root = tmp_path_factory.mktemp("rows")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    group = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": size, "ACCELERATE_USE_CPU": "true"}
    ranks = [
        Forked(
            [str(ROWS), str(root), size],
            env=os.environ
            | group
            | {"RANK": str(rank), "LOCAL_RANK": str(rank), "OMP_NUM_THREADS": "1", "PYTHONPATH": PATHS},
        )
        for rank in range(request.param)
    ]
    for rank in ranks:
        _, errors = rank.communicate(timeout=200)
        assert rank.returncode == 0, errors
    return root


@pytest.mark.parametrize("name", ["llama", "tied", "neox"])
def test_rows_are_exported_to_the_bytes_of_the_gathered_whole(group: Path, name: str, tmp_path: Path) -> None:
    """That a model on `meta` filled from the rows goes on as the one that was saved, the processes asserted."""
    checkpoint = Checkpoints(group / name, frozenset({1}), {}).read(1)
    assert sorted(path.name for path in checkpoint.path.glob("*.safetensors")) == [
        f"{kind}_0000{rank}.safetensors" for kind in ("optimizer", "weights") for rank in (0, 1)
    ]
    whole = group / name / "whole"
    write_weights(checkpoint, tmp_path)
    write_optimizer(checkpoint, tmp_path)
    for file in (WEIGHTS, OPTIMIZER):
        assert (tmp_path / file).read_bytes() == (whole / file).read_bytes()
    assert (checkpoint.path / "config.json").read_bytes() == (whole / "config.json").read_bytes()
    stored = StoredTensors.of([whole / WEIGHTS], huggingface_rows(checkpoint.architecture))
    rows = checkpoint.weights()
    assert stored.shapes == rows.shapes
    assert all(stored.whole(key).equal(rows.whole(key)) for key in rows.shapes)


@pytest.mark.parametrize("name", ["llama"])
def test_a_checkpoint_whose_rows_were_changed_is_passed_over(group: Path, name: str, tmp_path: Path) -> None:
    shutil.copytree(group / name, tmp_path / name)
    checkpoints = Checkpoints(tmp_path / name, frozenset({1}), {})
    assert checkpoints.newest(1) is not None
    (tmp_path / name / "step_00000001" / "weights_00001.safetensors").write_bytes(b"torn")
    assert checkpoints.newest(1) is None
    assert checkpoints.damaged == ["step_00000001"]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("sharded")
    write_inputs(directory)
    return directory


@pytest.fixture(scope="module")
def undisturbed(root: Path) -> Path:
    """The artefacts of trainings that nothing stopped, of one process and of two that share the weights."""
    for name in ("alone", "shared"):
        assert finish(begin(root, name)) == ""
    return root


def complete(root: Path, name: str) -> list[int]:
    found = (STEP_NAME.fullmatch(path.name) for path in (root / name / "work").iterdir())
    return sorted(int(step[1]) for step in found if step)


def stop(root: Path, name: str) -> int:
    process = begin(root, name)
    send_in_a_step(process, signal.SIGTERM, root / name / "work" / "metrics.jsonl")
    assert "InterruptedRunError" in finish(process)
    return complete(root, name)[-1]


@pytest.mark.slow
def test_a_sharded_training_that_was_stopped_ends_with_the_same_bytes(root: Path, undisturbed: Path) -> None:
    step = stop(root, "shared_asked")
    shards = root / "shared_asked" / "work" / f"step_{step:08d}"
    assert (shards / "weights_00001.safetensors").exists() and not (shards / WEIGHTS).exists()
    assert finish(begin(root, "shared_asked")) == ""
    assert files(root / "shared_asked" / "output") == files(undisturbed / "shared" / "output")


@pytest.mark.slow
def test_a_process_that_is_killed_while_rows_are_written_costs_no_checkpoint_before(
    root: Path, undisturbed: Path
) -> None:
    assert "InfrastructureError: process 1 was killed from outside" in finish(begin(root, "shared_killed"))
    assert complete(root, "shared_killed") == [25]
    assert finish(begin(root, "shared_killed")) == ""
    assert files(root / "shared_killed" / "output") == files(undisturbed / "shared" / "output")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "first", "then"), [("shared_then_alone", 2, 1), ("alone_then_shared", 1, 2)])
def test_a_training_goes_on_in_another_number_of_processes(
    root: Path, undisturbed: Path, name: str, first: int, then: int
) -> None:
    before = Checkpoints(root / name / "work", frozenset(), {}).read(stop(root, name)).spent
    assert before.device_seconds == pytest.approx(first * before.seconds) and before.seconds > 0
    assert finish(begin(root, name)) == ""
    result = json.loads((root / name / "result.json").read_text(encoding="utf-8"))
    hours = before.later(result["seconds"] - before.seconds, then).device_hours
    assert result["device_hours"] == pytest.approx(hours) and result["seconds"] > before.seconds
    for file in ("step_00000120/model.safetensors", "state/optimizer.safetensors"):
        one, other = (load_file(undisturbed / run / "output" / file) for run in ("alone", name))
        assert other.keys() == one.keys()
        assert all(np.allclose(other[key], one[key], rtol=1e-2, atol=1e-4) for key in one)
