"""One optimizer step."""

import dataclasses
import math
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch._inductor.exc import InductorError
from torch.nn.functional import cross_entropy

from paribus.config.groups.model import LlamaModel
from paribus.config.groups.training import TrainingConfig
from paribus.errors import OutOfMemoryError
from paribus.modeling.models import build_model
from paribus.training.checkpoint import load_optimizer_tensors, take_snapshot
from paribus.training.parallel import explained_memory_errors
from paribus.training.sharded import StoredTensors, save_pieces
from paribus.training.step import learning_rate, warmup_steps
from support.steps import make_batch, make_stepper

MODEL = LlamaModel(width=16, layers=2, heads=2, ffn_width=24, context_length=8)
CONTEXTS = np.random.default_rng(0).integers(0, 32, (6, 9))
INPUTS, TARGETS = CONTEXTS[:, :-1], CONTEXTS[:, 1:]


def config(**changes: object) -> TrainingConfig:
    return TrainingConfig(**({"device": "cpu", "precision": "fp32", "global_batch": 6} | changes))


def stepped(training: TrainingConfig, steps: int = 3) -> tuple[list[tuple[float, float]], dict[str, torch.Tensor]]:
    model = build_model(MODEL, 32, 0)
    stepper, batch = make_stepper(model, training), make_batch(INPUTS, TARGETS)
    results = [stepper.step(batch, rate=0.01) for _ in range(steps)]
    assert [result.problem for result in results] == [None] * steps
    return [(result.loss, result.gradient_norm) for result in results], model.state_dict()


def test_step_is_adamw_on_the_clipped_gradient_of_the_mean_loss() -> None:
    # Of gradients that are nearly zero AdamW makes whole steps, by their rounding, unless epsilon is well above them.
    training = config(micro_batch=2, gradient_clip=0.05, epsilon=1e-5)
    results, weights = stepped(training, steps=2)
    model = build_model(MODEL, 32, 0)
    matrices = [p for p in model.parameters() if p.ndim > 1]
    vectors = [p for p in model.parameters() if p.ndim <= 1]
    optimizer = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}],
        lr=0.01,
        betas=(0.9, 0.95),
        eps=1e-5,
    )
    rows = torch.from_numpy(CONTEXTS)
    for loss, norm in results:
        expected = cross_entropy(model.logits(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
        expected.backward()
        expected_norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.05)
        optimizer.step()
        optimizer.zero_grad()
        assert (loss, norm) == pytest.approx((expected.item(), expected_norm.item()), rel=1e-5)
    for name, value in model.state_dict().items():
        torch.testing.assert_close(weights[name], value, rtol=1e-4, atol=1e-6)


def test_micro_batch_and_recomputed_activations_change_rounding_only() -> None:
    whole, weights = stepped(config(micro_batch=64))
    for changes in ({"micro_batch": 1}, {"micro_batch": 4}, {"micro_batch": 6}, {"activation_checkpointing": True}):
        results, changed = stepped(config(**changes))
        assert np.allclose(results, whole, rtol=1e-5), changes
        for name, value in weights.items():
            torch.testing.assert_close(changed[name], value, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(
    ("weight", "limit", "problem"),
    [
        (float("nan"), 9.0, "the loss is nan"),
        (1e30, math.inf, "the gradient norm is inf"),
        (1.0, 3.0, r"above .*\(3\)"),
    ],
)
def test_bad_step_is_named_and_leaves_weights_and_optimizer_as_they_were(
    weight: float, limit: float, problem: str
) -> None:
    model = build_model(MODEL, 32, 0)
    with torch.no_grad():
        model.norm.weight[0] = weight
    before = {name: value.clone() for name, value in model.state_dict().items()}
    stepper = make_stepper(model, config(), loss_limit=limit)
    result = stepper.step(make_batch(INPUTS, TARGETS), rate=0.01)
    assert result.problem is not None and re.search(problem, result.problem)
    for name, value in model.state_dict().items():
        torch.testing.assert_close(value, before[name], rtol=0, atol=0, equal_nan=True)
    assert not stepper.prepared.optimizer.state
    assert all(parameter.grad is None for parameter in model.parameters())


def test_snapshot_is_what_the_optimizer_goes_on_from_and_nothing_changes_it(tmp_path: Path) -> None:
    stepper = make_stepper(build_model(MODEL, 32, 0), config())
    model, optimizer, batch = stepper.prepared.model, stepper.prepared.optimizer, make_batch(INPUTS, TARGETS)
    assert take_snapshot(model, optimizer, main=False) is None, "a process that writes nothing copies nothing"
    stepper.step(batch, rate=0.01)
    snapshot = take_snapshot(model, optimizer, main=True)
    assert snapshot is not None
    before = {name: piece.tensor.clone() for name, piece in snapshot.optimizer.items()}
    stepper.step(batch, rate=0.01)
    assert all(torch.equal(snapshot.optimizer[name].tensor, before[name]) for name in before)
    other = build_model(MODEL, 32, 1)
    other.load_state_dict({name: piece.tensor for name, piece in snapshot.weights.items()})
    again = make_stepper(other, config())
    save_pieces(tmp_path / "optimizer", snapshot.optimizer)
    load_optimizer_tensors(other, again.prepared.optimizer, StoredTensors.of([tmp_path / "optimizer"]))
    again.step(batch, rate=0.01)
    assert all(torch.equal(value, other.state_dict()[name]) for name, value in model.state_dict().items())


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 9.00 GiB"),
        torch.AcceleratorError("CUDA error: out of memory\nSearch for `cudaErrorMemoryAllocation' in"),
        RuntimeError("Triton Error [CUDA]: out of memory"),
        InductorError(torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"), None),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
        RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"),
        torch.distributed.DistBackendError(
            "NCCL error in: NCCLUtils.cpp:94, unhandled cuda error (run with NCCL_DEBUG=INFO for details), "
            "NCCL version 2.27.5\nncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\n"
            "Cuda failure 2 'out of memory'"
        ),
    ],
)
def test_running_out_of_memory_says_which_field_to_lower(error: Exception) -> None:
    with pytest.raises(OutOfMemoryError, match=r"set training\.micro_batch=3"), explained_memory_errors(config()):
        raise error


# The learning rate by step.

COSINE = TrainingConfig(learning_rate=1.0, warmup_share=0.25, min_learning_rate_ratio=0.1, global_batch=8)


def rates(training: TrainingConfig, steps: int) -> list[float]:
    return [learning_rate(step, steps, training) for step in range(steps)]


def test_cosine_rises_linearly_then_falls_to_the_floor() -> None:
    of_15 = rates(COSINE, 15)
    assert of_15[:5] == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])
    assert of_15[4:] == sorted(of_15[4:], reverse=True)
    assert (of_15[9], of_15[14]) == pytest.approx((0.55, 0.1))
    in_steps = rates(dataclasses.replace(COSINE, warmup_steps=4), 100)
    assert in_steps[:5] == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])
    assert in_steps[99] == pytest.approx(0.1)
    direct = TrainingConfig(learning_rate=1.0, warmup_share=0.0, min_learning_rate_ratio=0.0)
    assert (rates(direct, 1), rates(direct, 2)) == ([1.0], [1.0, 0.0])


@given(st.integers(0, 99), st.integers(1, 3000))
def test_warmup_ends_at_the_nearest_step_to_its_share_and_before_the_last(percent: int, steps: int) -> None:
    share, warmup = Fraction(percent, 100), warmup_steps(TrainingConfig(warmup_share=percent / 100), steps)
    nearest = min(abs(step - share * steps) for step in range(steps))
    assert 0 <= warmup < steps
    assert abs(warmup - share * steps) <= nearest + Fraction(1, 10**9)


INVERSE = TrainingConfig(learning_rate=1e-3, schedule="inverse_sqrt", warmup_steps=4000, warmup_learning_rate=1e-7)


def fairseq(updates: int, peak: float, initial: float, warmup: int) -> float:
    """As fairseq's inverse_square_root_schedule reckons the rate after so many updates."""
    if updates < warmup:
        return initial + updates * ((peak - initial) / warmup)
    return peak * warmup**0.5 * updates**-0.5


@given(st.integers(0, 10**6), st.integers(1, 10**4))
def test_inverse_square_root_equals_fairseq_whatever_the_budget(step: int, warmup: int) -> None:
    training = dataclasses.replace(INVERSE, warmup_steps=warmup)
    rate = learning_rate(step, step + 1, training)
    assert rate == pytest.approx(fairseq(step, 1e-3, 1e-7, warmup), rel=1e-12)
    assert rate == learning_rate(step, 10 * step + 7, training) <= 1e-3
