"""Training steps on random tokens in this process, without the artefacts of a run."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from paribus.config.groups.model import ModelConfig
from paribus.config.groups.training import TrainingConfig
from paribus.modeling.models import build_model
from paribus.training.data import Batch
from paribus.training.losses import DocumentEnd
from paribus.training.parallel import Prepared, prepare
from paribus.training.step import Stepper

EOS = 0


@dataclass(frozen=True)
class Alone:
    """What of an accelerator one process needs, on any device, several of them in a process."""

    device: torch.device
    num_processes: int = 1

    def prepare_model(self, model: Any) -> Any:
        """Nothing is to be prepared."""
        return model

    def unwrap_model(self, model: Any) -> Any:
        """Nothing wraps it."""
        return model

    def no_sync(self, model: Any) -> Any:
        """Nothing is synchronized."""
        return nullcontext()

    def backward(self, loss: torch.Tensor) -> None:
        """The backward pass."""
        loss.backward()

    def reduce(self, value: torch.Tensor, how: str) -> torch.Tensor:
        """The sum over one process."""
        return value

    def clip_grad_norm_(self, parameters: list[torch.nn.Parameter], limit: float) -> torch.Tensor:
        """Clip gradients; their norm before."""
        return torch.nn.utils.clip_grad_norm_(parameters, limit)


def stepper(
    model: ModelConfig, vocab_size: int, training: TrainingConfig, device: torch.device, *, documents: bool = False
) -> Stepper:
    """What makes steps of a model whose weights are those of seed 0."""
    built = build_model(model, vocab_size, 0, eos_id=EOS)
    prepared = prepare(Alone(device), built, training, DocumentEnd(EOS) if documents else None)
    return stepping(Alone(device), prepared, training)


def stepping(accelerator: Any, prepared: Prepared, training: TrainingConfig) -> Stepper:
    """What makes steps of what is prepared."""
    parameters = list(prepared.model.parameters())
    return Stepper(accelerator, prepared, parameters, training.micro_batch, training.gradient_clip, math.inf)


def batches(rows: int, length: int, vocab_size: int, steps: int) -> Iterator[Batch]:
    """Random tokens, the same for all, one in 200 of which ends a document; every token predicts the next."""
    random = np.random.default_rng(0)
    for step in range(steps):
        tokens = torch.from_numpy(random.integers(1, vocab_size, (rows, length + 1)))
        tokens[torch.from_numpy(random.random(tokens.shape) < 0.005)] = EOS
        yield Batch(step, np.arange(rows), tokens[:, :-1].clone(), tokens[:, 1:].clone(), rows * length)


def losses(stepped: Stepper, rows: int, length: int, vocab_size: int, steps: int) -> list[float]:
    """Losses of steps at a learning rate that makes them differ; RuntimeError for a step that was not made."""
    found = []
    for batch in batches(rows, length, vocab_size, steps):
        result = stepped.step(batch, 1e-3)
        if result.problem:
            raise RuntimeError(f"step {batch.step}: {result.problem}")
        found.append(result.loss)
    return found


def difference(found: Sequence[float], expected: Sequence[float]) -> float:
    """By how much of itself a number differs at the most; infinite where one is not finite."""
    if not all(map(math.isfinite, (*found, *expected))):
        return math.inf
    return max(abs(one / other - 1) for one, other in zip(found, expected, strict=True))


def gradients(stepped: Stepper, batch: Batch) -> dict[str, torch.Tensor]:
    """Of the summed loss of a batch, by the name of the parameter; float32, on the CPU."""
    device, prepared = stepped.accelerator.device, stepped.prepared
    prepared.wrapped(batch.inputs.to(device), batch.targets.to(device)).backward()
    named = {name: one.grad for name, one in prepared.model.named_parameters() if one.grad is not None}
    found = {name: gradient.detach().float().cpu() for name, gradient in named.items()}
    prepared.optimizer.zero_grad()
    return found


def distance(found: Mapping[str, torch.Tensor], expected: Mapping[str, torch.Tensor]) -> float:
    """The largest of all parameters of the norm of a difference over that of what is expected.

    Of gradients that are nothing but rounding (a bias that all keys have, say) it is over a share of the largest norm.
    """
    norms = {name: float(tensor.norm()) for name, tensor in expected.items()}
    least = 1e-3 * max(norms.values())
    parts = [float((found[name] - tensor).norm()) / max(norms[name], least) for name, tensor in expected.items()]
    return max(parts) if all(map(math.isfinite, parts)) else math.inf


def synchronize(device: torch.device) -> None:
    """Wait until the device has done what it was told."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
