"""A layer of each family."""

import torch
from torch import nn
from torch.nn.functional import gelu

from paribus.modeling.decoder.architecture import Architecture
from paribus.modeling.decoder.attention import Mask, attend
from paribus.modeling.decoder.cache import Past
from paribus.modeling.decoder.modules import LayerNorm, Linear, RMSNorm
from paribus.modeling.decoder.rotation import Rotation, rotate
from paribus.modeling.decoder.swiglu import swiglu


class LlamaLayer(nn.Module):
    """Touvron et al. 2023 (arXiv 2302.13971): RMSNorm before attention and before SwiGLU, no biases.

    The rows of `qkv` are those of all queries, all keys and all values; those of `gate_up` gates and then factors.
    """

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        width, inner, epsilon = architecture.width, architecture.ffn_width, architecture.norm_epsilon
        self.heads = architecture.heads
        self.attention_norm, self.mlp_norm = RMSNorm(width, epsilon), RMSNorm(width, epsilon)
        self.qkv, self.attention_output = Linear(width, 3 * width), Linear(width, width)
        self.gate_up, self.down = Linear(width, 2 * inner), Linear(inner, width)

    def forward(self, x: torch.Tensor, rotation: Rotation, mask: Mask, past: Past | None = None) -> torch.Tensor:
        """The residual stream after this layer from that before it, (rows, length, width)."""
        x = x + self._attention(self.attention_norm(x), rotation, mask, past)
        out: torch.Tensor = x + self.down(swiglu(self.gate_up(self.mlp_norm(x))))
        return out

    def _attention(self, x: torch.Tensor, rotation: Rotation, mask: Mask, past: Past | None) -> torch.Tensor:
        queries, keys, values = rotate(self.qkv(x).unflatten(-1, (3, self.heads, -1)), rotation, 2)
        out: torch.Tensor = self.attention_output(_attended(queries, keys, values, mask, past))
        return out


class GPTNeoXLayer(nn.Module):
    """Black et al. 2022 (arXiv 2204.06745) as Pythia has it: LayerNorm, GELU, biases, partly rotary positions.

    The rows of `qkv` are, head by head, those of its queries, keys and values.
    """

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        width, inner, epsilon = architecture.width, architecture.ffn_width, architecture.norm_epsilon
        self.heads, self.parallel_residual = architecture.heads, architecture.parallel_residual
        self.attention_norm, self.mlp_norm = LayerNorm(width, epsilon), LayerNorm(width, epsilon)
        self.qkv, self.attention_output = Linear(width, 3 * width, bias=True), Linear(width, width, bias=True)
        self.up, self.down = Linear(width, inner, bias=True), Linear(inner, width, bias=True)

    def forward(self, x: torch.Tensor, rotation: Rotation, mask: Mask, past: Past | None = None) -> torch.Tensor:
        """The residual stream after this layer from that before it, (rows, length, width)."""
        attended = x + self._attention(self.attention_norm(x), rotation, mask, past)
        return attended + self._mlp(self.mlp_norm(x if self.parallel_residual else attended))

    def _attention(self, x: torch.Tensor, rotation: Rotation, mask: Mask, past: Past | None) -> torch.Tensor:
        queries, keys, values = rotate(self.qkv(x).unflatten(-1, (self.heads, 3, -1)), rotation, 3)
        out: torch.Tensor = self.attention_output(_attended(queries, keys, values, mask, past))
        return out

    def _mlp(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.down(gelu(self.up(x)))
        return out


def _attended(
    queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, mask: Mask, past: Past | None
) -> torch.Tensor:
    """(rows, length, width) from heads (rows, length, heads, width of a head)."""
    if past is not None:
        keys, values = past.extended(keys, values)
    return attend(queries, keys, values, mask).flatten(2)
