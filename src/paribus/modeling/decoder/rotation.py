"""Rotary positions (Su et al. 2021, arXiv 2104.09864, equation 34), in float32, a head's first half with its second."""

from typing import Any, NamedTuple

import torch
from torch.autograd.function import once_differentiable


class Rotation(NamedTuple):
    """Cosines and sines of the angles of positions, float32 (rows or 1, length, 1, 1, rotated / 2)."""

    cosines: torch.Tensor
    sines: torch.Tensor


def rotation_at(positions: torch.Tensor, rotated: int, theta: float) -> Rotation:
    """That of `positions`, int64 (rows or 1, length), for heads of which `rotated` components turn."""
    halves = torch.arange(0, rotated, 2, device=positions.device).float() / rotated
    angles = (positions.float()[:, :, None] * (1.0 / theta**halves))[:, :, None, None, :]
    return Rotation(angles.cos(), angles.sin())


def rotate(qkv: torch.Tensor, rotation: Rotation, dim: int) -> torch.Tensor:
    """Queries and keys turned, values as they are; `qkv` has queries, keys and values along `dim`, 2 or 3 of 5.

    Uncompiled, `qkv` itself is changed: a copy would be kept for the backward pass beside the values, which are part of
    it. The compiler sees no copy in the first place.
    """
    if torch.compiler.is_compiling():
        turning = qkv.narrow(dim, 0, 2)
        width = 2 * rotation.cosines.shape[-1]
        turned = torch.cat([*_turned(turning[..., :width], *rotation), turning[..., width:].float()], dim=-1)
        return torch.cat([turned.to(qkv.dtype), qkv.narrow(dim, 2, 1)], dim=dim)
    rotated: torch.Tensor = _RotateInPlace.apply(qkv, *rotation, dim)  # type: ignore[no-untyped-call]
    return rotated


class _RotateInPlace(torch.autograd.Function):
    """Turns queries and keys where they stand, and on the way back their gradients."""

    @staticmethod
    def forward(context: Any, qkv: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor, dim: int) -> torch.Tensor:
        context.mark_dirty(qkv)
        context.save_for_backward(cosines, sines)
        context.dim = dim
        _turn(qkv.narrow(dim, 0, 2), cosines, sines)
        return qkv

    @staticmethod
    @once_differentiable
    def backward(context: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None, None]:
        cosines, sines = context.saved_tensors
        # Queries, keys and values take `qkv` apart and nothing else reads it, so this gradient was made for it alone.
        _turn(gradient.narrow(context.dim, 0, 2), cosines, -sines)
        return gradient, None, None, None


def _turn(heads: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor) -> None:
    turning = heads[..., : 2 * cosines.shape[-1]]
    for half, turned in zip(turning.chunk(2, dim=-1), _turned(turning, cosines, sines), strict=True):
        half.copy_(turned)


def _turned(turning: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Both halves of what turns, in float32."""
    first, second = turning.float().chunk(2, dim=-1)
    return (first * cosines).addcmul(second, sines, value=-1), (second * cosines).addcmul(first, sines)
