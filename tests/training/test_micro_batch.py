"""The micro-batch: by formula, by trial with an allocator's answers in place of a GPU's, and halved in a step."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from paribus.config.groups.model import LlamaModel
from paribus.config.groups.training import TrainingConfig
from paribus.config.units import format_size
from paribus.errors import OutOfMemoryError
from paribus.modeling.memory import TrainingSetting, training_memory, training_setting
from paribus.modeling.models import build_model
from paribus.training import loop, step
from paribus.training.distributed import ALONE
from paribus.training.fit import MARGIN, Fit, fit
from paribus.training.micro_batch import MicroBatch, largest_fitting, trial
from paribus.training.parallel import make_accelerator, prepare
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


def test_refusal_of_a_single_context_names_the_parts_and_what_to_change() -> None:
    wide = replace(SETTING, gpu=True, activation_checkpointing=True, processes=2)
    for setting, named, unnamed in (
        (SETTING, (format_size(needed(1)), "64.0 MiB are", "training.activation_checkpointing=true"), "nothing"),
        (wide, ("training.parallel=fsdp",), "activation_checkpointing"),
    ):
        with pytest.raises(OutOfMemoryError) as refused:
            fit(MODEL, VOCABULARY, setting, 2**26)
        for part in (*named, "weights", "moments", "gradients", "activations"):
            assert part in str(refused.value)
        assert unnamed not in str(refused.value)


def test_result_has_the_micro_batch_and_the_memory_predicted_of_it(tmp_path: Path) -> None:
    inputs = write_inputs(tmp_path)
    for given, used in ((2, 2), (0, TRAINING.global_batch)):
        run = config(training=replace(TRAINING, micro_batch=given))
        result = execute(tmp_path, f"run{given}", inputs, run)
        memory = training_memory(run.model, 257, TrainingSetting(micro_batch=used, share=4))
        assert memory is not None
        assert (result["micro_batch"], result["memory"]) == (used, memory.device)
        assert json.loads((tmp_path / f"run{given}" / "said.json").read_text()) == []


# The search for the largest that fits.


def searched(start: int, most: int) -> tuple[int, list[int]]:
    """The largest micro-batch of a share of 12 where `most` fit, and the sizes that were tried."""
    tried: list[int] = []

    def fits(size: int) -> bool:
        tried.append(size)
        return size <= most

    return largest_fitting(start, 12, fits), tried


class Trials:
    """Trials of a small model, for which this process is told that CUDA has 1,000 bytes."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.patch, self.reserved = patch, 0
        patch.setattr(torch.cuda, "reset_peak_memory_stats", lambda device: None)
        patch.setattr(torch.cuda, "max_memory_reserved", lambda device: self.reserved)
        patch.setattr(torch.cuda, "mem_get_info", lambda device: (0, 1000))
        model = build_model(LlamaModel(width=16, layers=2, heads=2, ffn_width=24, context_length=8), 50, seed=0)
        self.accelerator, _ = make_accelerator(TRAINING)
        self.prepared = prepare(self.accelerator, model, TRAINING, None)

    def fits(self, size: int, share: int) -> bool:
        return trial(self.accelerator, ALONE, self.prepared, size, share=share, length=8)


@pytest.fixture
def trials(monkeypatch: pytest.MonkeyPatch) -> Trials:
    return Trials(monkeypatch)


def test_trial_leaves_some_memory_free_and_changes_nothing_of_the_training(trials: Trials) -> None:
    model, tokens, random = trials.prepared.model, list[torch.Tensor](), torch.get_rng_state()
    before = [parameter.clone() for parameter in model.parameters()]
    hook = trials.prepared.wrapped.register_forward_pre_hook(lambda _, inputs: tokens.append(inputs[0]))
    for reserved, fits in ((940, True), (960, False)):
        trials.reserved = reserved
        assert trials.fits(16, share=16) is fits
        assert all(parameter.grad is None for parameter in model.parameters())
        assert all(torch.equal(*pair) for pair in zip(before, model.parameters(), strict=True))
        assert not trials.prepared.optimizer.state
    hook.remove()
    assert torch.equal(random, torch.get_rng_state())
    # They are of all the vocabulary.
    assert len(tokens[0].unique()) > 25 and 0 <= int(tokens[0].min()) <= int(tokens[0].max()) < 50


def test_trial_that_runs_out_of_memory_is_no_error_and_any_other_is(trials: Trials) -> None:
    errors = [torch.OutOfMemoryError("CUDA out of memory"), RuntimeError("an illegal memory access")]

    def backward(loss: torch.Tensor) -> None:
        raise errors.pop(0)

    trials.patch.setattr(trials.accelerator, "backward", backward)
    assert trials.fits(3, share=3) is False
    with pytest.raises(RuntimeError, match="illegal"):
        trials.fits(3, share=3)


@pytest.mark.parametrize(
    "case",
    [(0, "cuda", "ddp", 0), (0, "cuda", "fsdp", 0), (0, "cpu", "ddp", 0), (0, "cuda", "ddp", 5), (4, "cuda", "ddp", 0)],
)
def test_only_the_first_step_of_whole_models_on_gpus_is_searched_for(
    case: tuple[int, str, str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The formula says 4, and 8 fit."""
    given, device, parallel, start = case
    calls: list[object] = []
    messages: list[str] = []
    monkeypatch.setattr(loop, "trial", lambda *arguments, **_: calls.append(arguments[3]) or arguments[3] <= 8)
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", calls.append)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (0, 1000))
    run: Any = SimpleNamespace(
        micro_batch=MicroBatch(tmp_path, given, 16),
        accelerator=SimpleNamespace(device=torch.device(device), num_processes=2),
        training=SimpleNamespace(parallel=parallel, micro_batch=4),
        batches=SimpleNamespace(global_batch=32, contexts=SimpleNamespace(context_length=8)),
        host=ALONE,
        main=True,
        listener=SimpleNamespace(message=messages.append),
    )
    searched = case == (0, "cuda", "ddp", 0)
    assert loop.first_micro_batch(run, None, start) == (8 if searched else 4)  # type: ignore[arg-type]
    record = MicroBatch(tmp_path, given, 16)
    assert (record.used, record.tried_on, len(messages)) == ((8, 1000, 1) if searched else (None, None, 0))
    # What the trial took that did not fit is no peak of the training.
    assert calls == ([4, 8, 16, torch.device("cuda")] if searched else [])


# The record in the working directory.


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
    finish(begin(tmp_path, "short"))
    halved, resumed = json.loads((tmp_path / "short" / "said.json").read_text())
    assert "the next attempt takes 1 (process 1): all processes begin again from the last checkpoint" in halved
    assert resumed.startswith("training goes on from the checkpoint of step ")
    assert json.loads((tmp_path / "short" / "result.json").read_text())["micro_batch"] == 1
