"""One optimizer step over one global batch.

The loss is the sum over target tokens divided by the target tokens of the global batch, so neither the micro-batch nor
where padding stands changes more than rounding.
"""

import math
from typing import Any

import torch
from torch.nn.functional import cross_entropy

from paribus.config.groups.training import TrainingConfig
from paribus.errors import NumericalError
from paribus.ordering.packing.contexts import NO_TARGET
from paribus.training.attention import document_attention
from paribus.training.batches import Integers


def micro_batch_loss(
    model: Any, inputs: torch.Tensor, targets: torch.Tensor, document_end: int | None = None
) -> torch.Tensor:
    """Sum of the cross-entropies (nats) of `targets`, -1 where there is none, after `inputs`, both int64 (rows, L).

    Tokens attend to all before them in their row; if `document_end`, the end-of-document token, is given, only to those
    of their own document.
    """
    mask = None if document_end is None else document_attention(inputs, document_end)
    logits = model(input_ids=inputs, attention_mask=mask, use_cache=False).logits
    return cross_entropy(logits.float().flatten(0, 1), targets.flatten(), ignore_index=NO_TARGET, reduction="sum")


def train_step(
    accelerator: Any,
    model: Any,
    optimizer: Any,
    inputs: Integers,
    targets: Integers,
    *,
    step: int,
    rate: float,
    training: TrainingConfig,
    document_end: int | None = None,
) -> tuple[float, float]:
    """Train on a global batch of `inputs` and `targets`, as `micro_batch_loss` takes them, with learning rate `rate`.

    Returns the mean loss in nats a token and the global gradient norm before clipping. Raises NumericalError naming
    the 1-based `step` if either is infinite or not a number; the weights are then untouched.
    """
    predicted = int((targets != NO_TARGET).sum())
    loss = 0.0
    for start in range(0, len(inputs), training.micro_batch):
        rows = slice(start, start + training.micro_batch)
        read, following = (torch.from_numpy(tokens[rows]).to(accelerator.device) for tokens in (inputs, targets))
        part = micro_batch_loss(model, read, following, document_end) / predicted
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
