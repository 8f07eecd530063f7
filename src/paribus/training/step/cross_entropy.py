"""Cross-entropy of hidden states times an output matrix, without the logits of all tokens at once.

PyTorch has this too (`torch.nn.functional.linear_cross_entropy`), but sums losses and gradients of bfloat16 products in
bfloat16: a sum of thousands of nats is then a multiple of 256. Here all sums are in float32.
"""

from typing import Any

import torch
from torch.autograd.function import once_differentiable

from paribus.ordering.packing.contexts import NO_TARGET

TOKENS_AT_ONCE = 1024
"""Tokens whose logits exist at the same time: a vocabulary of 128K needs 0.5 GiB for them in float32."""


def summed_cross_entropy(
    hidden: torch.Tensor, output: torch.Tensor, targets: torch.Tensor, label_smoothing: float = 0.0
) -> torch.Tensor:
    """Sum over `targets` (n,), -1 where there is none, of the cross-entropy of `hidden` (n, width) times `output`.

    `output` is the output matrix (vocabulary, width); the sum is a float32 scalar, in nats. Under autocast the products
    are in its type. Gradients are computed with the loss, so there can be one backward pass.

    With `label_smoothing` ε, a share of ε of each target is spread evenly over the vocabulary (Szegedy et al. 2016,
    section 7).
    """
    kind = hidden.device.type
    product = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else hidden.dtype
    with torch.autocast(kind, enabled=False):
        loss: torch.Tensor = _SummedCrossEntropy.apply(hidden, output, targets, product)  # type: ignore[no-untyped-call]
        return loss + label_smoothing * _above_mean(hidden, output, targets) if label_smoothing else loss


class _SummedCrossEntropy(torch.autograd.Function):
    """The loss, and in the same pass over chunks of tokens its gradients."""

    @staticmethod
    def forward(
        context: Any, hidden: torch.Tensor, output: torch.Tensor, targets: torch.Tensor, product: torch.dtype
    ) -> torch.Tensor:
        matrix, total = output.to(product), torch.zeros((), device=hidden.device)
        of_hidden, of_output = torch.empty_like(hidden), torch.zeros_like(output, dtype=torch.float32)
        for start in range(0, len(targets), TOKENS_AT_ONCE):
            part = slice(start, start + TOKENS_AT_ONCE)
            states = hidden[part].to(product)
            loss, difference = _loss_and_difference((states @ matrix.T).float(), targets[part])
            total += loss
            of_hidden[part] = difference.to(product) @ matrix
            _add_product(of_output, difference.to(product), states)
        context.save_for_backward(of_hidden, of_output.to(output.dtype))
        return total

    @staticmethod
    @once_differentiable
    def backward(context: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, None, None]:
        of_hidden, of_output = context.saved_tensors
        return of_hidden.mul_(gradient), of_output.mul_(gradient), None, None


def _loss_and_difference(logits: torch.Tensor, targets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The summed loss, and its gradient by the logits: probabilities minus the targets; overwrites `logits`."""
    counted, chosen = (targets != NO_TARGET)[:, None], targets.clamp(min=0)[:, None]
    normalizers = logits.logsumexp(dim=1, keepdim=True)
    loss = ((normalizers - logits.gather(1, chosen)) * counted).sum()
    probabilities = logits.sub_(normalizers).exp_()
    probabilities.scatter_add_(1, chosen, torch.full_like(chosen, -1, dtype=logits.dtype))
    return loss, probabilities.mul_(counted)


def _add_product(total: torch.Tensor, difference: torch.Tensor, states: torch.Tensor) -> None:
    """Add differenceᵀ · states to a float32 `total`."""
    if difference.dtype == total.dtype:
        total.addmm_(difference.T, states)
    else:
        total += difference.T @ states


def _above_mean(hidden: torch.Tensor, output: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Sum over targets of their logit minus the mean of all logits, in float32.

    Times ε it is what smoothing adds to the cross-entropy, since ln Σ exp of the logits is part of both its terms.
    """
    matrix = output.float()
    directions = matrix[targets.clamp(min=0)] - matrix.mean(dim=0)
    above = (hidden.float() * directions).sum(dim=1)
    return above.masked_fill(targets == NO_TARGET, 0.0).sum()
