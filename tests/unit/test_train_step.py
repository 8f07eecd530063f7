"""One optimizer step."""

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from paribus.config.groups.model import ModelConfig
from paribus.config.groups.training import TrainingConfig
from paribus.errors import ConfigurationError, NumericalError, OutOfMemoryError
from paribus.modeling.build import build_model
from paribus.training.device import explained_memory_errors, make_accelerator, resolve_device, resolve_precision
from paribus.training.optimizer import load_optimizer_tensors, make_optimizer, optimizer_tensors
from paribus.training.step import train_step

MODEL = ModelConfig(width=16, layers=2, heads=2, ffn_width=24, context_length=8)
CONTEXTS = np.random.default_rng(0).integers(0, 32, (6, 9))
INPUTS, TARGETS = CONTEXTS[:, :-1], CONTEXTS[:, 1:]


def config(**changes: object) -> TrainingConfig:
    return TrainingConfig(**({"device": "cpu", "precision": "fp32", "global_batch": 6} | changes))


def stepped(training: TrainingConfig, steps: int = 3) -> tuple[list[tuple[float, float]], dict[str, torch.Tensor]]:
    accelerator, _ = make_accelerator(training)
    model = build_model(MODEL, 32, 0)
    model, optimizer = accelerator.prepare(model, make_optimizer(model, training))
    results = [
        train_step(accelerator, model, optimizer, INPUTS, TARGETS, step=step + 1, rate=0.01, training=training)
        for step in range(steps)
    ]
    return results, model.state_dict()


def test_a_step_is_adamw_on_the_clipped_gradient_of_the_mean_loss() -> None:
    training = config(micro_batch=2, gradient_clip=0.05)
    results, weights = stepped(training, steps=2)
    model = build_model(MODEL, 32, 0)
    matrices = [p for p in model.parameters() if p.ndim > 1]
    others = [p for p in model.parameters() if p.ndim <= 1]
    optimizer = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}], lr=0.01, betas=(0.9, 0.95)
    )
    rows = torch.from_numpy(CONTEXTS)
    for loss, norm in results:
        expected = cross_entropy(model(rows[:, :-1]).logits.flatten(0, 1), rows[:, 1:].flatten())
        expected.backward()
        expected_norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.05)
        optimizer.step()
        optimizer.zero_grad()
        assert (loss, norm) == pytest.approx((expected.item(), expected_norm.item()), rel=1e-5)
    for name, value in model.state_dict().items():
        torch.testing.assert_close(weights[name], value, rtol=1e-4, atol=1e-6)


def test_the_micro_batch_changes_rounding_only() -> None:
    whole, weights = stepped(config(micro_batch=64))
    for micro_batch in (1, 4, 6):
        parts, others = stepped(config(micro_batch=micro_batch))
        assert np.allclose(parts, whole, rtol=1e-5)
        for name, value in weights.items():
            torch.testing.assert_close(others[name], value, rtol=1e-3, atol=1e-5)


def test_a_loss_that_is_not_a_number_names_the_step_and_leaves_the_weights() -> None:
    training = config()
    accelerator, _ = make_accelerator(training)
    model = build_model(MODEL, 32, 0)
    with torch.no_grad():
        model.model.norm.weight[0] = float("nan")
    before = model.model.embed_tokens.weight.clone()
    with pytest.raises(NumericalError, match=r"the loss is nan at step 7 .*training\.learning_rate"):
        optimizer = make_optimizer(model, training)
        train_step(accelerator, model, optimizer, INPUTS, TARGETS, step=7, rate=0.01, training=training)
    assert torch.equal(before, model.model.embed_tokens.weight)


def test_optimizer_state_survives_as_named_tensors() -> None:
    training = config()
    model = build_model(MODEL, 32, 0)
    optimizer = make_optimizer(model, training)
    model(torch.from_numpy(CONTEXTS)).logits.sum().backward()
    optimizer.step()
    tensors = optimizer_tensors(model, optimizer)
    again = make_optimizer(model, training)
    load_optimizer_tensors(model, again, {name: tensor.clone() for name, tensor in tensors.items()})
    restored = optimizer_tensors(model, again)
    assert restored.keys() == tensors.keys()
    assert all(torch.equal(restored[name], tensors[name]) for name in tensors)


@pytest.mark.parametrize(
    "error", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes")]
)
def test_running_out_of_memory_says_which_field_to_lower(error: Exception) -> None:
    with pytest.raises(OutOfMemoryError, match=r"set training\.micro_batch=3"), explained_memory_errors(config()):
        raise error


def test_other_runtime_errors_are_left_alone() -> None:
    with pytest.raises(RuntimeError, match="shapes"), explained_memory_errors(config()):
        raise RuntimeError("shapes differ")


@pytest.mark.parametrize("device", ["gpu", "cuda:", "cuda:x", "cuda:99"])
def test_a_device_that_is_not_there_is_refused_by_path(device: str) -> None:
    with pytest.raises(ConfigurationError, match=r"training\.device"):
        resolve_device(device)


def test_automatic_precision_on_a_cpu_is_float32() -> None:
    assert resolve_precision("auto", torch.device("cpu")) == "fp32"
    assert resolve_precision("bf16", torch.device("cpu")) == "bf16"
