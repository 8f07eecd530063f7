"""The search for the largest micro-batch, with an allocator's answers in place of a GPU's."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from paribus.config.groups.model import LlamaModel
from paribus.modeling.models import build_model
from paribus.training import loop
from paribus.training.distributed import ALONE
from paribus.training.micro_batch import MicroBatch, largest_fitting, trial
from paribus.training.parallel import Prepared, make_accelerator, prepare
from support.models import NAMED
from support.training_inputs import TRAINING


@pytest.mark.parametrize(
    ("start", "most", "found", "tried"),
    [(4, 7, 6, [4, 6, 12]), (4, 99, 12, [4, 6, 12]), (6, 2, 2, [6, 4, 3, 2]), (12, 12, 12, [12]), (8, 7, 6, [6, 12])],
)
def test_sizes_are_tried_up_from_the_first_or_down(start: int, most: int, found: int, tried: list[int]) -> None:
    asked: list[int] = []

    def fits(size: int) -> bool:
        asked.append(size)
        return size <= most

    assert largest_fitting(start, 12, fits) == found
    assert asked == tried


@pytest.fixture
def prepared() -> tuple[Any, Prepared]:
    model = build_model(LlamaModel(width=16, layers=2, heads=2, ffn_width=24, context_length=8), 50, seed=0)
    accelerator, _ = make_accelerator(TRAINING)
    return accelerator, prepare(accelerator, model, TRAINING, None)


def cuda(monkeypatch: pytest.MonkeyPatch, reserved: int) -> None:
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", lambda device: None)
    monkeypatch.setattr(torch.cuda, "max_memory_reserved", lambda device: reserved)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (0, 1000))


@pytest.mark.parametrize(("reserved", "fits"), [(940, True), (960, False)])
def test_a_trial_leaves_some_memory_free_and_nothing_behind(
    prepared: tuple[Any, Prepared], reserved: int, fits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    cuda(monkeypatch, reserved)
    accelerator, made = prepared
    before = [parameter.clone() for parameter in made.model.parameters()]
    assert trial(accelerator, ALONE, made, 3, share=3, length=8) is fits
    assert all(parameter.grad is None for parameter in made.model.parameters())
    assert all(torch.equal(*pair) for pair in zip(before, made.model.parameters(), strict=True))
    assert not made.optimizer.state


def test_a_trial_that_fails_of_memory_is_no_error_and_any_other_is(
    prepared: tuple[Any, Prepared], monkeypatch: pytest.MonkeyPatch
) -> None:
    cuda(monkeypatch, 0)
    accelerator, made = prepared
    failing = [torch.OutOfMemoryError("CUDA out of memory"), RuntimeError("an illegal memory access")]

    def backward(loss: torch.Tensor) -> None:
        raise failing.pop(0)

    monkeypatch.setattr(accelerator, "backward", backward)
    assert trial(accelerator, ALONE, made, 3, share=3, length=8) is False
    with pytest.raises(RuntimeError, match="illegal"):
        trial(accelerator, ALONE, made, 3, share=3, length=8)


@pytest.mark.parametrize(("share", "held"), [(3, [False]), (6, [False, True])])
def test_a_trial_of_one_of_several_micro_batches_holds_the_gradients_of_another(
    prepared: tuple[Any, Prepared], share: int, held: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    cuda(monkeypatch, 0)
    accelerator, made = prepared
    found: list[bool] = []

    def backward(loss: torch.Tensor) -> None:
        found.append(all(parameter.grad is not None for parameter in made.model.parameters()))
        loss.backward()

    monkeypatch.setattr(accelerator, "backward", backward)
    assert trial(accelerator, ALONE, made, 3, share=share, length=8)
    assert found == held


def test_a_trial_computes_on_tokens_of_all_the_vocabulary_and_draws_nothing_from_what_training_draws(
    prepared: tuple[Any, Prepared], monkeypatch: pytest.MonkeyPatch
) -> None:
    cuda(monkeypatch, 0)
    accelerator, made = prepared
    seen: list[torch.Tensor] = []
    hook = made.wrapped.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    before = torch.get_rng_state()
    assert trial(accelerator, ALONE, made, 16, share=16, length=8)
    hook.remove()
    assert torch.equal(before, torch.get_rng_state())
    assert len(seen[0].unique()) > 25 and 0 <= int(seen[0].min()) <= int(seen[0].max()) < 50


def searching(directory: Path, case: tuple[int, str, str], said: list[str]) -> Any:
    """A run whose micro-batch is given, or 0 and of 4 by the formula, on a kind of device, in two processes."""
    given, device, parallel = case
    return SimpleNamespace(
        micro_batch=MicroBatch(directory, given, 16),
        accelerator=SimpleNamespace(device=torch.device(device), num_processes=2),
        training=SimpleNamespace(parallel=parallel, micro_batch=4),
        batches=SimpleNamespace(global_batch=32, contexts=SimpleNamespace(context_length=8)),
        host=ALONE,
        main=True,
        listener=SimpleNamespace(message=said.append),
    )


@pytest.mark.parametrize(
    ("case", "found"),
    [
        ((0, "cuda", "ddp", 0), 8),
        ((0, "cuda", "fsdp", 0), 4),
        ((0, "cpu", "ddp", 0), 4),
        ((0, "cuda", "ddp", 5), 4),
        ((4, "cuda", "ddp", 0), 4),
    ],
)
def test_only_a_first_step_on_whole_models_on_gpus_is_searched_for(
    tmp_path: Path, case: tuple[int, str, str, int], found: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, device, parallel, start = case
    done: list[object] = []

    def tried(accelerator: Any, host: Any, prepared: Any, size: int, **_: Any) -> bool:
        done.append(size)
        return size <= 8

    monkeypatch.setattr(loop, "trial", tried)
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", done.append)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (0, 1000))
    said: list[str] = []
    run = searching(tmp_path, (given, device, parallel), said)
    assert loop.first_micro_batch(run, None, start) == found  # type: ignore[arg-type]
    kept = MicroBatch(tmp_path, given, 16)
    assert (kept.used, kept.tried_on) == ((8, 1000) if found == 8 else (None, None))
    assert len(said) == (found == 8)
    # What the trial took that did not fit is no peak of the training.
    assert done == ([4, 8, 16, torch.device("cuda")] if found == 8 else [])


MODEL, GIB = NAMED["laptop"], 2**30


def of_share(directory: Path, share: int, given: int = 16) -> MicroBatch:
    return MicroBatch(directory, given, share)


@pytest.mark.parametrize("given", [0, 16])
def test_a_micro_batch_of_a_smaller_share_is_forgotten_with_it(tmp_path: Path, given: int) -> None:
    """Where it was all of the share, memory had no part in it: in fewer processes it would stay small to the end."""
    of_share(tmp_path, 4, given).keep(4, 8 * GIB)
    assert (of_share(tmp_path, 4, given).used, of_share(tmp_path, 8, given).used) == (4, None)
    # Nor was more of it ever tried.
    assert (of_share(tmp_path, 4, given).tried_on, of_share(tmp_path, 8, given).tried_on) == (8 * GIB, None)
    of_share(tmp_path, 8, given).keep(8, 9 * GIB)
    assert of_share(tmp_path, 4, given).used == 4
    of_share(tmp_path, 4, given).keep(4, 8 * GIB)
    assert (of_share(tmp_path, 8, given).used, of_share(tmp_path, 8, given).tried_on) == (8, 9 * GIB)


def test_a_micro_batch_that_memory_has_lowered_stays_so_with_every_share(tmp_path: Path) -> None:
    assert of_share(tmp_path, 8).halve(8, 8) == 4
    for share, used in ((4, 4), (8, 4), (2, 2), (16, 4)):
        assert of_share(tmp_path, share).used == used
        of_share(tmp_path, share).keep(used)
    assert of_share(tmp_path, 8).halvings == 1
