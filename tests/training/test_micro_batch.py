"""The micro-batch: by formula, and halved in a step."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from paribus.config.groups.training import TrainingConfig
from paribus.config.units import format_size
from paribus.errors import OutOfMemoryError
from paribus.modeling.memory import TrainingSetting, training_memory, training_setting
from paribus.training import step
from paribus.training.fit import MARGIN, Fit, fit
from paribus.training.micro_batch import MicroBatch, largest_fitting
from support.models import NAMED
from support.stages import files
from support.training_inputs import TRAINING, config, execute, write_inputs
from support.training_processes import begin, finish

MODEL, VOCABULARY, GIB = NAMED["laptop"], 8192, 2**30
SETTING = TrainingSetting(micro_batch=64, share=96)


def needed(micro_batch: int) -> int:
    memory = training_memory(MODEL, VOCABULARY, replace(SETTING, micro_batch=micro_batch))
    assert memory is not None
    return memory.device


def test_largest_divisor_of_the_share_that_fits_is_taken() -> None:
    assert fit(MODEL, VOCABULARY, SETTING, 64 * GIB) == Fit(64)
    for room, size in ((48, 48), (47, 32), (15, 12), (1, 1)):
        available = int(needed(room) * MARGIN) + 1
        fitted = fit(MODEL, VOCABULARY, SETTING, available)
        assert fitted.micro_batch == size and fitted.lowered is not None
        for part in (f"lowered from 64 to {size}", format_size(needed(64)), format_size(available)):
            assert part in fitted.lowered
    training = TrainingConfig(global_batch=48, micro_batch=16)
    assert training_setting(training, "bf16", 6, gpu=True, documents=False).micro_batch == 8


# Trainings that run out of memory in a step go on with half of the micro-batch, and with the same batches.

FOUR = replace(TRAINING, micro_batch=4)


def refuse_above(most: int, monkeypatch: pytest.MonkeyPatch, after: int = 0) -> list[int]:
    """Fail micro-batches above `most`, after so many, when they have left some gradients; sizes that were tried."""
    tried: list[int] = []
    original = step._slices

    def slices(rows: int, size: int) -> Iterator[slice]:
        tried.append(size)
        yield from original(rows, size)
        if size > most and len(tried) > after:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 1 bytes")

    monkeypatch.setattr(step, "_slices", slices)
    return tried


def test_step_that_does_not_fit_is_computed_again_in_halves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = write_inputs(tmp_path)
    ones = execute(tmp_path, "ones", inputs, config(training=replace(TRAINING, micro_batch=1)))
    tried = refuse_above(1, monkeypatch)
    result = execute(tmp_path, "halved", inputs, config(training=FOUR))
    assert tried[:4] == [4, 2, 1, 1]
    assert (result["micro_batch"], result["memory"]) == (1, ones["memory"])
    # What failed left nothing behind: the run is that of the smaller micro-batch to the last bit.
    assert files(tmp_path / "halved" / "output") == files(tmp_path / "ones" / "output")
    record = json.loads((tmp_path / "halved" / "work" / "micro_batch.json").read_text())
    assert record == {"given": 4, "used": 1, "share": 4, "halvings": 2, "tried_on": None, "recomputes": False}
    tried.clear()
    execute(tmp_path, "halved", inputs, config(training=FOUR))
    assert set(tried) <= {1}


def test_single_context_a_deterministic_training_and_an_optimizer_are_not_halved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step of the optimizer that fails may have changed some of the weights."""
    inputs, strict = write_inputs(tmp_path), replace(FOUR, deterministic=True)

    def out_of_memory(*_: Any, **__: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    with monkeypatch.context() as patch:
        patch.setattr(torch.optim.AdamW, "step", out_of_memory)
        with pytest.raises(OutOfMemoryError, match=r"training ran out of memory with training\.micro_batch=4; set"):
            execute(tmp_path, "optimizer", inputs, config(training=FOUR))
    refuse_above(0, monkeypatch)
    with pytest.raises(OutOfMemoryError, match=r"memory ran out with training\.micro_batch=1 .*activation_checkpoint"):
        execute(tmp_path, "least", inputs, config(training=FOUR))
    with pytest.raises(OutOfMemoryError, match=r"micro_batch=4 .*with training\.deterministic it is not lowered"):
        execute(tmp_path, "strict", inputs, config(training=strict))


def test_processes_of_which_one_runs_out_of_memory_begin_again_from_the_last_checkpoint(tmp_path: Path) -> None:
    write_inputs(tmp_path)
    finish(begin(tmp_path, "out_of_memory"))
    halved, resumed = json.loads((tmp_path / "out_of_memory" / "messages.json").read_text())
    assert "the next attempt takes 1 (process 1): all processes begin again from the last checkpoint" in halved
    assert resumed.startswith("training goes on from the checkpoint of step ")
    assert json.loads((tmp_path / "out_of_memory" / "result.json").read_text())["micro_batch"] == 1


def test_the_largest_size_that_fits_is_found_from_any_start(tmp_path: Path) -> None:
    for start, most, size in ((1, 12, 12), (4, 3, 3), (5, 6, 6), (12, 1, 1)):
        assert largest_fitting(start, 12, lambda tried, most=most: tried <= most) == size
    assert MicroBatch(tmp_path, 9, 9).halve(9, 9) == 3
