"""Trainings that run out of memory in a step: they go on with half of the micro-batch, and with the same batches."""

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

from paribus.errors import OutOfMemoryError
from paribus.stage import SilentListener
from paribus.training import step
from paribus.training.train import build
from support import forked
from support.compiled import recorded_symbolic
from support.stages import files
from support.training_inputs import TRAINING, config, context, execute, write_inputs
from support.training_processes import SCENARIOS

FOUR = dataclasses.replace(TRAINING, micro_batch=4)


def refuse(monkeypatch: pytest.MonkeyPatch, most: int, after: int = 0) -> list[int]:
    """Let micro-batches above `most` fail after so many, as an allocator does, with the gradients of some rows there;
    those that were tried.
    """
    tried: list[int] = []
    original = step._slices

    def slices(rows: int, size: int) -> Any:
        tried.append(size)
        yield from original(rows, size)
        if size > most and len(tried) > after:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 1 bytes")

    monkeypatch.setattr(step, "_slices", slices)
    return tried


def test_a_step_that_does_not_fit_is_computed_again_in_halves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = write_inputs(tmp_path)
    execute(tmp_path, "ones", inputs, config(training=dataclasses.replace(TRAINING, micro_batch=1)))
    tried = refuse(monkeypatch, most=1)
    report = SilentListener()
    result = build(context(tmp_path, "halved", inputs, config(training=FOUR), report))
    assert tried[:4] == [4, 2, 1, 1]
    assert result["micro_batch"] == 1
    # What is predicted of the micro-batch that was used stands beside it.
    assert result["memory"] == json.loads((tmp_path / "ones" / "result.json").read_text())["memory"]
    # What failed left nothing behind: the run is that of the smaller micro-batch to the last bit.
    assert files(tmp_path / "halved" / "output") == files(tmp_path / "ones" / "output")
    kept = json.loads((tmp_path / "halved" / "work" / "micro_batch.json").read_text())
    assert kept == {"given": 4, "used": 1, "share": 4, "halvings": 2, "tried_on": None, "recomputes": False}
    tried.clear()
    execute(tmp_path, "halved", inputs, config(training=FOUR))
    assert set(tried) <= {1}


def test_a_later_step_halves_too_and_the_weights_agree_up_to_rounding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = write_inputs(tmp_path)
    execute(tmp_path, "straight", inputs, config(training=FOUR))
    assert refuse(monkeypatch, most=2, after=6) is not None
    execute(tmp_path, "halved", inputs, config(training=FOUR))
    first, second = (load_file(tmp_path / n / "output/step_00000014/model.safetensors") for n in ("straight", "halved"))
    assert all(np.allclose(first[name], second[name], rtol=1e-3, atol=1e-5) for name in first)


def test_halves_are_compiled_for_their_size_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = write_inputs(tmp_path)
    refuse(monkeypatch, most=2)
    with recorded_symbolic() as symbolic:
        execute(tmp_path, "halved", inputs, config(training=dataclasses.replace(FOUR, compile="always")))
    assert symbolic and not any(symbolic)


def test_what_cannot_be_halved_and_a_deterministic_training_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = write_inputs(tmp_path)
    refuse(monkeypatch, most=0)
    with pytest.raises(OutOfMemoryError, match=r"memory ran out with training\.micro_batch=1 .*activation_checkpoint"):
        execute(tmp_path, "least", inputs, config(training=FOUR))
    strict = dataclasses.replace(FOUR, deterministic=True)
    with pytest.raises(OutOfMemoryError, match=r"micro_batch=4 .*with training\.deterministic it is not lowered"):
        execute(tmp_path, "strict", inputs, config(training=strict))


def test_what_the_optimizer_lacks_is_no_step_to_repeat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have changed some of the weights."""

    def short(*_: Any, **__: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(torch.optim.AdamW, "step", short)
    with pytest.raises(OutOfMemoryError, match=r"training ran out of memory with training\.micro_batch=4; set"):
        execute(tmp_path, "run", write_inputs(tmp_path), config(training=FOUR))


def test_two_processes_of_which_one_runs_out_of_memory_begin_again_from_the_last_checkpoint(tmp_path: Path) -> None:
    write_inputs(tmp_path)
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": forked.PATHS}
    done = forked.run([str(SCENARIOS), str(tmp_path), "short"], env=environment, members=2)
    assert done.returncode == 0, done.stderr
    said, went_on = json.loads((tmp_path / "short" / "said.json").read_text())
    assert "the next attempt takes 1 (process 1): all processes begin again from the last checkpoint" in said
    assert went_on.startswith("training goes on from the checkpoint of step ")
    result = json.loads((tmp_path / "short" / "result.json").read_text())
    assert result["micro_batch"] == 1


def test_a_micro_batch_of_nought_is_the_largest_by_formula_on_a_cpu(tmp_path: Path) -> None:
    run = config(training=dataclasses.replace(TRAINING, micro_batch=0))
    assert execute(tmp_path, "run", write_inputs(tmp_path), run)["micro_batch"] == TRAINING.global_batch
