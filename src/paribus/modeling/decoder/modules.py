"""Modules whose weights are float32 and which compute in the type of their input; no weight is drawn here."""

from typing import Any

import torch
from torch import nn
from torch.autograd.function import once_differentiable
from torch.nn.functional import embedding, layer_norm, linear, rms_norm


class Embedding(nn.Module):
    """A row for each token, (tokens, width)."""

    def __init__(self, tokens: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(tokens, width))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """The rows of `ids`, in the type of the weight; their gradients are summed in it."""
        return embedding(ids, self.weight)


class Linear(nn.Module):
    """A matrix (outputs, inputs), and a bias where there is one."""

    def __init__(self, inputs: int, outputs: int, *, bias: bool = False) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, inputs))
        self.bias = nn.Parameter(torch.empty(outputs)) if bias else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(..., inputs) to (..., outputs)."""
        return linear(x, self.weight.to(x.dtype), None if self.bias is None else self.bias.to(x.dtype))


class RMSNorm(nn.Module):
    """Zhang and Sennrich 2019, equation 4; statistics are float32."""

    def __init__(self, width: int, epsilon: float) -> None:
        super().__init__()
        self.weight, self.epsilon = nn.Parameter(torch.empty(width)), epsilon

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(..., width) to the same shape."""
        if torch.compiler.is_compiling() or x.is_cuda:
            return rms_norm(x, self.weight.shape, self.weight.to(x.dtype), self.epsilon)
        normalized: torch.Tensor = _RMSNorm.apply(x, self.weight.to(x.dtype), self.epsilon)  # type: ignore[no-untyped-call]
        return normalized


class _RMSNorm(torch.autograd.Function):
    """For CPUs, where PyTorch has no kernel but a dozen steps, half of which keep a tensor of the size of x."""

    @staticmethod
    def forward(context: Any, x: torch.Tensor, weight: torch.Tensor, epsilon: float) -> torch.Tensor:
        norms = torch.linalg.vector_norm(x, dim=-1, keepdim=True, dtype=torch.float32)
        scale = norms.square_().div_(x.shape[-1]).add_(epsilon).rsqrt_()
        context.save_for_backward(x, scale, weight)
        normalized: torch.Tensor = (x * scale).mul_(weight).to(x.dtype)
        return normalized

    @staticmethod
    @once_differentiable
    def backward(context: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, None]:
        x, scale, weight = context.saved_tensors
        wide, normalized = gradient.float(), x * scale
        of_normalized = wide * weight
        shares = torch.linalg.vecdot(of_normalized, normalized)[..., None].div_(x.shape[-1])
        of_weight = (wide * normalized).flatten(0, -2).sum(0)
        of_x = of_normalized.addcmul_(normalized, shares, value=-1).mul_(scale)
        return of_x.to(x.dtype), of_weight.to(weight.dtype), None


class LayerNorm(nn.Module):
    """Ba et al. 2016, with a bias; statistics are float32."""

    def __init__(self, width: int, epsilon: float) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.empty(width)), nn.Parameter(torch.empty(width))
        self.epsilon = epsilon

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(..., width) to the same shape."""
        return layer_norm(x, self.weight.shape, self.weight.to(x.dtype), self.bias.to(x.dtype), self.epsilon)
