"""Checkpoints that are whole or absent."""

import json
from pathlib import Path

import pytest
import torch

from paribus.config.groups.model import LlamaModel
from paribus.modeling.models import build_model, load_model
from paribus.training import checkpoint
from paribus.training.checkpoint import Checkpoints, Snapshot
from paribus.training.metrics import Spent
from paribus.training.sharded import Piece, save_pieces

MODEL = LlamaModel(width=16, layers=1, heads=2, ffn_width=16, context_length=8)
FINGERPRINT = {"order": "abc", "tokens": 12}
FOREVER = 10**9
SCORED = frozenset({3, 4, 5})


def filled(directory: Path, *steps: int) -> Checkpoints:
    checkpoints = Checkpoints(directory, SCORED, FINGERPRINT)
    for step in steps:
        save(checkpoints, step)
    return checkpoints


def save(checkpoints: Checkpoints, step: int) -> None:
    model = build_model(MODEL, 32, step)
    whole = dict(model.named_parameters()), {"step.x": torch.full((2,), float(step))}
    weights, optimizer = ({name: Piece(t.detach(), 0, tuple(t.shape)) for name, t in part.items()} for part in whole)
    snapshot = Snapshot(model, weights, optimizer, sharded=False)
    checkpoints.save(step, snapshot, Spent(step * 0.5, step * 2.0))


def test_newest_checkpoint_returns_what_was_saved(tmp_path: Path) -> None:
    newest = filled(tmp_path, 5, 10).newest(FOREVER)
    assert newest is not None
    assert (newest.step, newest.spent) == (10, Spent(5.0, 20.0))
    assert torch.equal(newest.optimizer().whole("step.x"), torch.full((2,), 10.0))
    expected = build_model(MODEL, 32, 10).state_dict()
    assert all(torch.equal(value, expected[name]) for name, value in load_model(newest.path).state_dict().items())
    files = list(newest.path.iterdir())
    assert {path.suffix for path in files} == {".json", ".safetensors"}
    assert all(json.loads(path.read_text()) for path in files if path.suffix == ".json")


def test_checkpoint_records_every_device_its_training_was_computed_on(tmp_path: Path) -> None:
    first = filled(tmp_path)
    first.go_on(None, "one GPU in bf16")
    save(first, 5)
    for step, device in ((6, "cpu in fp32"), (7, "one GPU in bf16")):
        resumed = filled(tmp_path)
        resumed.go_on(resumed.newest(FOREVER), device)
        save(resumed, step)
        newest = resumed.newest(FOREVER)
        assert newest is not None and newest.computed_on == ("one GPU in bf16", "cpu in fp32")
    again = filled(tmp_path)
    again.go_on(None, "cpu in fp32")
    assert again.computed_on == ["cpu in fp32"]


def test_scored_checkpoints_stay_and_the_newest_two_are_resumable(tmp_path: Path) -> None:
    checkpoints = filled(tmp_path, 1, 2, 3, 4)
    assert checkpoints.steps() == [3, 4]
    for step in (5, 6, 7, 8):
        save(checkpoints, step)
    assert checkpoints.steps() == [3, 4, 5, 7, 8]
    assert sorted(path.parent.name[-1] for path in tmp_path.glob("*/optimizer.safetensors")) == ["7", "8"]


def test_damaged_newest_checkpoint_is_passed_over_and_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    filled(tmp_path, 5, 10)
    for name in ("model.safetensors", "optimizer.safetensors", "complete.json", "state.json"):
        path = tmp_path / "step_00000010" / name
        content = path.read_bytes()
        for harm in ("truncated", "missing"):
            path.write_bytes(content[:-9]) if harm == "truncated" else path.unlink()
            caplog.clear()
            checkpoints = filled(tmp_path)
            newest = checkpoints.newest(FOREVER)
            assert newest is not None and newest.step == 5, (name, harm)
            assert checkpoints.damaged == ["step_00000010"], (name, harm)
            assert "step_00000010 is damaged" in caplog.text
        path.write_bytes(content)


def test_checkpoint_interrupted_at_any_write_is_never_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError("no space left on device")

    for function in ("save_model", "save_file", "write_json", "publish_directory"):
        directory = tmp_path / function
        directory.mkdir()
        checkpoints = filled(directory, 5)
        with monkeypatch.context() as patch, pytest.raises(OSError, match="no space"):
            patch.setattr(checkpoint, function, fail)
            filled(directory, 10)
        assert checkpoints.steps() == [5], function
        checkpoints.discard_after(5)
        assert [path.name for path in directory.iterdir()] == ["step_00000005"], function


def test_rows_of_a_larger_killed_group_are_no_part_of_a_checkpoint(tmp_path: Path) -> None:
    """Its processes may outlive the clearing at the start, and write into the directory of the current step."""
    model = build_model(MODEL, 32, 0)
    partial = tmp_path / "step_00000005.partial"
    partial.mkdir()
    save_pieces(partial / "weights_00007.safetensors", {"embedding.weight": Piece(torch.zeros(4, 16), 28, (32, 16))})
    weights = {name: Piece(each.detach(), 0, tuple(each.shape)) for name, each in model.named_parameters()}
    checkpoints = filled(tmp_path)
    checkpoints.save(5, Snapshot(model, weights, {}, sharded=True), Spent())
    newest = checkpoints.newest(FOREVER)
    assert newest is not None
    assert torch.equal(newest.weights().rows("embedding.weight", 0, 32), model.embedding.weight)
