"""SwiGLU (Shazeer 2020, arXiv 2002.05202, equation 6) of both factors side by side."""

from typing import Any

import torch
from torch.autograd.function import once_differentiable
from torch.nn.functional import silu


def swiglu(gate_up: torch.Tensor) -> torch.Tensor:
    """SiLU of the first half of `gate_up` (..., 2 n) times the second, (..., n).

    SiLU is computed again in the backward pass, and both gradients are written side by side.
    """
    function = _CompiledSwiGLU if torch.compiler.is_compiling() else _SwiGLU
    product: torch.Tensor = function.apply(gate_up)  # type: ignore[no-untyped-call]
    return product


class _SwiGLU(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, gate_up: torch.Tensor) -> torch.Tensor:
        context.save_for_backward(gate_up)
        gate, up = gate_up.chunk(2, dim=-1)
        return silu(gate).mul_(up)

    @staticmethod
    @once_differentiable
    def backward(context: Any, gradient: torch.Tensor) -> torch.Tensor:
        (gate_up,) = context.saved_tensors
        gate, up = gate_up.chunk(2, dim=-1)
        both = torch.empty_like(gate_up)
        of_gate, of_up = both.chunk(2, dim=-1)
        torch.ops.aten.silu_backward.grad_input(gradient * up, gate, grad_input=of_gate)
        torch.mul(gradient, silu(gate), out=of_up)
        return both


class _CompiledSwiGLU(torch.autograd.Function):
    """For the compiler, which would compute two sigmoids for each element of the gradients, more than it can hide."""

    @staticmethod
    def forward(context: Any, gate_up: torch.Tensor) -> torch.Tensor:
        context.save_for_backward(gate_up)
        gate, up = gate_up.chunk(2, dim=-1)
        # Not in place as above: PyTorch 2.11 then traces a function without a gradient, and says nothing.
        return silu(gate) * up

    @staticmethod
    def backward(context: Any, gradient: torch.Tensor) -> torch.Tensor:
        (gate_up,) = context.saved_tensors
        gate, up = (half.float()[..., None, :] for half in gate_up.chunk(2, dim=-1))
        wide, sigmoid = gradient.float()[..., None, :], gate.sigmoid()
        of_gate, of_up = wide * up * sigmoid * (1 + gate * (1 - sigmoid)), wide * gate * sigmoid
        is_gate = (torch.arange(2, device=gate.device) == 0)[:, None]
        return torch.where(is_gate, of_gate, of_up).to(gate_up.dtype).flatten(-2)
