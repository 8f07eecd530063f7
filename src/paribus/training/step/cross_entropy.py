"""Cross-entropy of hidden states times an output matrix, without the logits of all tokens at once.

PyTorch has this too (`torch.nn.functional.linear_cross_entropy`), but sums losses and gradients of bfloat16 products in
bfloat16: a sum of thousands of nats is then a multiple of 256. Here all sums are in float32.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch.autograd.function import once_differentiable

from paribus.modeling.memory import LOSS_TOKENS
from paribus.ordering.packing import NO_TARGET

LossAndDifference = Callable[[torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]
"""Of logits (n, vocabulary) and targets (n,): the summed loss in float32, and its gradient by the logits in their type:
probabilities minus the targets. Logits may be overwritten."""


def summed_cross_entropy(
    hidden: torch.Tensor,
    output: torch.Tensor,
    targets: torch.Tensor,
    label_smoothing: float = 0.0,
    of_logits: LossAndDifference | None = None,
) -> torch.Tensor:
    """Sum over `targets` (n,), -1 where there is none, of the cross-entropy of `hidden` (n, width) times `output`.

    `output` is the output matrix (vocabulary, width); the sum is a float32 scalar, in nats. Products are in the type of
    `hidden`. Gradients are computed with the loss, so there can be one backward pass.

    With `label_smoothing` ε, a share of ε of each target is spread evenly over the vocabulary (Szegedy et al. 2016,
    section 7). `of_logits` is `loss_and_difference`, or `fused_loss_and_difference` compiled.
    """
    function = of_logits or loss_and_difference
    loss: torch.Tensor = _SummedCrossEntropy.apply(hidden, output, targets, function)  # type: ignore[no-untyped-call]
    return loss + label_smoothing * _above_mean(hidden, output, targets) if label_smoothing else loss


class _SummedCrossEntropy(torch.autograd.Function):
    """The loss, and in the same pass over chunks of tokens its gradients."""

    @staticmethod
    def forward(
        context: Any,
        hidden: torch.Tensor,
        output: torch.Tensor,
        targets: torch.Tensor,
        of_logits: LossAndDifference,
    ) -> torch.Tensor:
        matrix, total = output.to(hidden.dtype), torch.zeros((), device=hidden.device)
        of_hidden, of_output = torch.empty_like(hidden), torch.zeros_like(output, dtype=torch.float32)
        at_once = LOSS_TOKENS["gpu" if hidden.is_cuda else "cpu"]
        for start in range(0, len(targets), at_once):
            part = slice(start, start + at_once)
            states = hidden[part]
            loss, difference = of_logits(states @ matrix.T, targets[part])
            total += loss
            torch.mm(difference, matrix, out=of_hidden[part])
            _add_product(of_output, difference, states)
        context.save_for_backward(of_hidden, of_output.to(output.dtype))
        return total

    @staticmethod
    @once_differentiable
    def backward(context: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, None, None]:
        of_hidden, of_output = context.saved_tensors
        return of_hidden.mul_(gradient), of_output.mul_(gradient), None, None


def loss_and_difference(logits: torch.Tensor, targets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """A `LossAndDifference` that overwrites logits in float32, for what is not compiled."""
    wide = logits.float()
    counted, chosen = (targets != NO_TARGET)[:, None], targets.clamp(min=0)[:, None]
    normalizers = wide.logsumexp(dim=1, keepdim=True)
    loss = ((normalizers - wide.gather(1, chosen)) * counted).sum()
    probabilities = wide.sub_(normalizers).exp_()
    probabilities.scatter_add_(1, chosen, torch.full_like(chosen, -1, dtype=wide.dtype))
    return loss, probabilities.mul_(counted).to(logits.dtype)


def fused_loss_and_difference(logits: torch.Tensor, targets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The same without steps in memory between, for the compiler: logits are read twice and differences written."""
    wide = logits.float()
    counted, chosen = (targets != NO_TARGET)[:, None], targets.clamp(min=0)[:, None]
    normalizers = wide.logsumexp(dim=1, keepdim=True)
    loss = ((normalizers - wide.gather(1, chosen)) * counted).sum()
    is_target = torch.arange(wide.shape[1], device=wide.device)[None] == chosen
    difference = ((wide - normalizers).exp() - is_target.float()) * counted
    return loss, difference.to(logits.dtype)


def _add_product(total: torch.Tensor, difference: torch.Tensor, states: torch.Tensor) -> None:
    """Add differenceᵀ · states to a float32 `total`; a GPU adds as it multiplies, without rounding the product."""
    if difference.dtype == total.dtype:
        total.addmm_(difference.T, states)
    elif total.is_cuda:
        torch.addmm(total, difference.T, states, out_dtype=total.dtype, out=total)
    else:
        total += difference.T @ states


def _above_mean(hidden: torch.Tensor, output: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Sum over targets of their logit minus the mean of all logits, in float32.

    Times ε it is what smoothing adds to the cross-entropy, since ln Σ exp of the logits is part of both its terms.
    """
    matrix = output.float()
    # As indexing; but threads of a CPU add up the gradient of an index in whatever order they come.
    of_targets = torch.nn.functional.embedding(targets.clamp(min=0), matrix)
    directions = of_targets - matrix.mean(dim=0)
    above = (hidden.float() * directions).sum(dim=1)
    return above.masked_fill(targets == NO_TARGET, 0.0).sum()
