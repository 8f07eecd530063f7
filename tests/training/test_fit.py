"""A micro-batch that does not fit into memory."""

import dataclasses
import json
from pathlib import Path

import pytest
import torch

from paribus.config.groups.training import TrainingConfig
from paribus.config.units import format_size
from paribus.errors import OutOfMemoryError
from paribus.modeling.memory import TrainingSetting, training_memory, training_setting
from paribus.stage import SilentListener
from paribus.training.fit import MARGIN, fit
from paribus.training.micro_batch import available_bytes
from paribus.training.train import build
from support.models import NAMED
from support.training_inputs import TRAINING, config, context, write_inputs

MODEL, VOCABULARY = NAMED["laptop"], 8192
HOW = TrainingSetting(micro_batch=64, share=96)


def needed(micro_batch: int, how: TrainingSetting = HOW) -> int:
    memory = training_memory(MODEL, VOCABULARY, dataclasses.replace(how, micro_batch=micro_batch))
    assert memory is not None
    return memory.device


def test_a_micro_batch_that_fits_stays() -> None:
    found = fit(MODEL, VOCABULARY, HOW, 64 * 2**30)
    assert (found.micro_batch, found.lowered) == (64, None)


@pytest.mark.parametrize("fits", [48, 32, 12, 1])
def test_the_largest_divisor_of_the_share_that_fits_is_taken(fits: int) -> None:
    available = int(needed(fits) * MARGIN) + 1
    found = fit(MODEL, VOCABULARY, HOW, available)
    assert found.micro_batch == fits
    assert found.lowered is not None
    assert f"training.micro_batch is lowered from 64 to {fits}" in found.lowered
    assert format_size(needed(64)) in found.lowered
    assert format_size(available) in found.lowered


def test_where_not_one_context_fits_the_parts_and_what_to_change_are_said() -> None:
    with pytest.raises(OutOfMemoryError) as refused:
        fit(MODEL, VOCABULARY, HOW, 2**26)
    message = str(refused.value)
    assert format_size(needed(1)) in message
    assert "64.0 MiB are" in message
    for part in ("weights", "moments", "gradients", "activations"):
        assert part in message
    assert "training.activation_checkpointing=true" in message
    gpu = dataclasses.replace(HOW, gpu=True, activation_checkpointing=True, processes=2)
    with pytest.raises(OutOfMemoryError, match=r"training\.parallel=fsdp") as refused:
        fit(MODEL, VOCABULARY, gpu, 2**26)
    assert "activation_checkpointing" not in str(refused.value)


def test_the_share_of_a_process_bounds_its_micro_batch() -> None:
    training = TrainingConfig(global_batch=48, micro_batch=16)
    how = training_setting(training, "bf16", 6, gpu=True, documents=False)
    assert (how.micro_batch, how.share, how.precision) == (8, 8, "bf16")


def test_memory_that_pytorch_keeps_of_a_model_before_is_free_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """CUDA's answers after one fine-tuning, of which 1 GiB is still in use: as much is free as before it."""
    gib = 2**30
    answers = {"mem_get_info": (20 * gib, 80 * gib), "memory_reserved": 58 * gib, "memory_allocated": gib}
    for name, answer in answers.items():
        monkeypatch.setattr(torch.cuda, name, lambda device, answer=answer: answer)
    assert available_bytes(torch.device("cuda", 0)) == 77 * gib


def test_a_cpu_takes_the_configured_micro_batch() -> None:
    assert available_bytes(torch.device("cpu")) is None


def test_a_run_says_which_micro_batch_it_used_and_what_it_was_to_take(tmp_path: Path) -> None:
    report = SilentListener()
    run = config(training=dataclasses.replace(TRAINING, micro_batch=2))
    result = build(context(tmp_path, "run", write_inputs(tmp_path), run, report))
    memory = training_memory(run.model, 257, TrainingSetting(micro_batch=2, share=4))
    assert memory is not None
    assert (result["micro_batch"], result["memory"]) == (2, memory.device)
    assert report.messages == []
    assert json.loads(json.dumps(result)) == result
