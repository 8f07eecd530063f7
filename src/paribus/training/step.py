"""One optimizer step over one global batch.

The loss is the sum over target tokens divided by the tokens of the global batch, so the micro-batch changes rounding
only.
"""

import math
from typing import Any

import torch
from torch.nn.functional import cross_entropy

from paribus.config.groups.training import TrainingConfig
from paribus.errors import NumericalError
from paribus.training.batches import Integers


def micro_batch_loss(model: Any, contexts: torch.Tensor) -> torch.Tensor:
    """Sum of the cross-entropies (nats) of the targets of `contexts`, int64 (rows, context length + 1)."""
    logits = model(input_ids=contexts[:, :-1], use_cache=False).logits
    return cross_entropy(logits.float().flatten(0, 1), contexts[:, 1:].flatten(), reduction="sum")


def train_step(
    accelerator: Any,
    model: Any,
    optimizer: Any,
    contexts: Integers,
    *,
    step: int,
    rate: float,
    training: TrainingConfig,
) -> tuple[float, float]:
    """Train on `contexts` (global batch, context length + 1) with learning rate `rate`.

    Returns the mean loss in nats a token and the global gradient norm before clipping. Raises NumericalError naming
    the 1-based `step` if either is infinite or not a number; the weights are then untouched.
    """
    targets = contexts.shape[0] * (contexts.shape[1] - 1)
    loss = 0.0
    for start in range(0, len(contexts), training.micro_batch):
        rows = torch.from_numpy(contexts[start : start + training.micro_batch]).to(accelerator.device)
        part = micro_batch_loss(model, rows) / targets
        accelerator.backward(part)
        loss += part.item()
    _check_finite("loss", loss, step, rate)
    norm = float(accelerator.clip_grad_norm_(model.parameters(), training.gradient_clip))
    _check_finite("gradient norm", norm, step, rate)
    for group in optimizer.param_groups:
        group["lr"] = rate
    optimizer.step()
    optimizer.zero_grad()
    return loss, norm


def _check_finite(quantity: str, value: float, step: int, rate: float) -> None:
    if not math.isfinite(value):
        raise NumericalError(
            f"the {quantity} is {value} at step {step} (learning rate {rate:.3g}); try a lower training.learning_rate, "
            "more training.warmup_steps or training.precision=fp32"
        )
