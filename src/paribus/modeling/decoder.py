"""Decoders: Llama and GPT-NeoX in PyTorch alone, from token ids to the hidden states that losses and scores need.

An `Architecture` says what is computed; `Decoder` has the weights and computes it, in float32 or with matrix products,
activations and residual stream in bfloat16, by the same code on every device and for one process or many. Its modules
have float32 weights and compute in the type of their input; no weight is drawn here. `places` names the tensors of
transformers' classes.

What must hold: the logits are those of transformers' classes, and a seed gives each of their tensors the same numbers,
however they are fused here.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.autograd.function import once_differentiable
from torch.nn.attention.varlen import varlen_attn
from torch.nn.functional import embedding, gelu, layer_norm, linear, rms_norm, scaled_dot_product_attention
from torch.utils.checkpoint import checkpoint

from paribus.modeling.architecture import Architecture
from paribus.modeling.fused import Rotation, rotate, rotation_at, swiglu

VOCABULARY = ("embedding.weight", "output.weight")
"""Parameters with a row for each token."""


class Documents(NamedTuple):
    """Documents that stand end to end in the rows of a batch; a token attends within its own document only."""

    bounds: torch.Tensor
    """First token of each document, counted through all rows, then the number of all tokens; int32 (documents + 1,)."""
    longest: int
    """Upper bound of the tokens of a document."""


Mask = torch.Tensor | Documents | None
"""None: causal in the row. A tensor: bool, true where a token attends, (rows, 1, length, length of the keys)."""


class LayerCache(NamedTuple):
    """Keys and values of one layer, as views of a `KVCache`."""

    keys: torch.Tensor
    """(rows, capacity, heads, width of a head)."""
    values: torch.Tensor
    length: int
    """Tokens in each row so far."""

    def extended(self, keys: torch.Tensor, values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Store keys and values (rows, length, heads, width) after the earlier ones; return those of all tokens."""
        end = self.length + keys.shape[1]
        self.keys[:, self.length : end], self.values[:, self.length : end] = keys, values
        return self.keys[:, :end], self.values[:, :end]


class KVCache:
    """Keys and values of `rows` rows with room for `capacity` tokens each."""

    def __init__(
        self, architecture: Architecture, rows: int, capacity: int, device: torch.device, dtype: torch.dtype
    ) -> None:
        shape = (architecture.layers, rows, capacity, architecture.heads, architecture.head_width)
        self._keys, self._values = (torch.empty(shape, device=device, dtype=dtype) for _ in range(2))
        self.length = 0
        """Tokens in each row so far."""

    def past(self, layer: int) -> LayerCache:
        return LayerCache(self._keys[layer], self._values[layer], self.length)

    def keep(self, rows: torch.Tensor) -> None:
        """Keep the rows `rows` only, int64 (n,)."""
        self._keys, self._values = self._keys[:, rows], self._values[:, rows]


class Decoder(nn.Module):
    """A decoder with float32 weights, which are uninitialized until they are set."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.architecture = architecture
        self.computes_in = torch.float32
        """Type of matrix products, activations and the residual stream."""
        self.activation_checkpointing = False
        """True if layers keep their input only and are computed again in the backward pass."""
        layer = LlamaLayer if architecture.kind == "llama" else GPTNeoXLayer
        norm = RMSNorm if architecture.kind == "llama" else LayerNorm
        self.embedding = Embedding(architecture.vocab_size, architecture.width)
        self.layers = nn.ModuleList(layer(architecture) for _ in range(architecture.layers))
        self.norm = norm(architecture.width, architecture.norm_epsilon)
        self.output = None if architecture.tied_embeddings else Linear(architecture.width, architecture.vocab_size)

    @property
    def output_weight(self) -> torch.Tensor:
        """(vocabulary size, width): logits are hidden states times its transpose. The embedding where they are tied."""
        return self.embedding.weight if self.output is None else self.output.weight

    @property
    def device(self) -> torch.device:
        return self.embedding.weight.device

    def forward(
        self, ids: torch.Tensor, positions: torch.Tensor | None = None, mask: Mask = None, cache: KVCache | None = None
    ) -> torch.Tensor:
        """Hidden states before the output matrix, (rows, length, width) in `computes_in`; `ids`: (rows, length), int64.

        `positions`, int64 (rows or 1, length), are 0, 1, ... unless they are given. With a `cache` the tokens follow
        those that it holds, and it holds them too afterwards; a mask must say what they attend to.
        """
        if positions is None:
            positions = torch.arange(ids.shape[1], device=ids.device)[None]
        rotation = rotation_at(positions, self.architecture.rotated, self.architecture.rope_theta)
        x = self.embedding(ids).to(self.computes_in)
        for number, layer in enumerate(self.layers):
            if self.activation_checkpointing and self.training:
                x = checkpoint(layer, x, rotation, mask, use_reentrant=False)
            else:
                x = layer(x, rotation, mask, cache.past(number) if cache else None)
        if cache:
            cache.length += ids.shape[1]
        hidden: torch.Tensor = self.norm(x)
        return hidden

    def logits(self, ids: torch.Tensor, mask: Mask = None) -> torch.Tensor:
        """Logits, (rows, length, vocabulary size); they are large, so losses and scores do without."""
        hidden: torch.Tensor = self(ids, mask=mask)
        return hidden @ self.output_weight.to(hidden.dtype).T


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

    def forward(self, x: torch.Tensor, rotation: Rotation, mask: Mask, past: LayerCache | None = None) -> torch.Tensor:
        """The residual stream after this layer from that before it, (rows, length, width)."""
        qkv = self.qkv(self.attention_norm(x)).unflatten(-1, (3, self.heads, -1))
        x = x + self.attention_output(_attention(qkv, rotation, 2, mask, past))
        out: torch.Tensor = x + self.down(swiglu(self.gate_up(self.mlp_norm(x))))
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

    def forward(self, x: torch.Tensor, rotation: Rotation, mask: Mask, past: LayerCache | None = None) -> torch.Tensor:
        """The residual stream after this layer from that before it, (rows, length, width)."""
        qkv = self.qkv(self.attention_norm(x)).unflatten(-1, (self.heads, 3, -1))
        attended = x + self.attention_output(_attention(qkv, rotation, 3, mask, past))
        inside: torch.Tensor = gelu(self.up(self.mlp_norm(x if self.parallel_residual else attended)))
        out: torch.Tensor = attended + self.down(inside)
        return out


def _attention(qkv: torch.Tensor, rotation: Rotation, dim: int, mask: Mask, past: LayerCache | None) -> torch.Tensor:
    """Attention (rows, length, width) of queries, keys and values, which are side by side along `dim` of `qkv`."""
    queries, keys, values = rotate(qkv, rotation, dim)
    if past is not None:
        keys, values = past.extended(keys, values)
    return attend(queries, keys, values, mask).flatten(2)


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
        return linear(x, self.weight.to(x.dtype), None if self.bias is None else self.bias.to(x.dtype))


class RMSNorm(nn.Module):
    """Zhang and Sennrich 2019, equation 4; statistics are float32."""

    def __init__(self, width: int, epsilon: float) -> None:
        super().__init__()
        self.weight, self.epsilon = nn.Parameter(torch.empty(width)), epsilon

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if torch.compiler.is_compiling() or x.is_cuda:
            return rms_norm(x, self.weight.shape, self.weight.to(x.dtype), self.epsilon)
        normalized: torch.Tensor = _RMSNorm.apply(x, self.weight.to(x.dtype), self.epsilon)  # type: ignore[no-untyped-call]
        return normalized


class _RMSNorm(torch.autograd.Function):
    """RMS norm for CPUs, where PyTorch takes a dozen steps, half of which keep a tensor of the size of x."""

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
        normalized_gradient = wide * weight
        shares = torch.linalg.vecdot(normalized_gradient, normalized)[..., None].div_(x.shape[-1])
        weight_gradient = (wide * normalized).flatten(0, -2).sum(0)
        x_gradient = normalized_gradient.addcmul_(normalized, shares, value=-1).mul_(scale)
        return x_gradient.to(x.dtype), weight_gradient.to(weight.dtype), None


class LayerNorm(nn.Module):
    """Ba et al. 2016, with a bias; statistics are float32."""

    def __init__(self, width: int, epsilon: float) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.empty(width)), nn.Parameter(torch.empty(width))
        self.epsilon = epsilon

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return layer_norm(x, self.weight.shape, self.weight.to(x.dtype), self.bias.to(x.dtype), self.epsilon)


def attend(queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, mask: Mask) -> torch.Tensor:
    """Attention (rows, length, heads, width of a head) from `queries` of that shape; keys and values may be longer."""
    if isinstance(mask, Documents):
        return _attend_in_documents(queries, keys, values, mask)
    queries, keys, values = (heads.transpose(1, 2) for heads in (queries, keys, values))
    out = scaled_dot_product_attention(queries, keys, values, attn_mask=mask, is_causal=mask is None)
    return out.transpose(1, 2)


def _attend_in_documents(
    queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, documents: Documents
) -> torch.Tensor:
    """Attend without a mask of all pairs of tokens: time and memory grow with the documents, not with the rows."""
    q, k, v = (heads.flatten(0, 1) for heads in (queries, keys, values))
    bounds, longest = documents
    out = varlen_attn(q, k, v, bounds, bounds, longest, longest, window_size=(-1, 0))
    assert isinstance(out, torch.Tensor)
    return out.view(queries.shape)


class Place(NamedTuple):
    """A tensor as transformers has it."""

    name: str
    """Name in a model of transformers, by which its initial numbers are drawn."""
    stored: str
    """Name in the files of that model."""
    parameter: str
    """Name of a parameter of the `Decoder`."""
    rows: slice
    """Rows of that parameter's first dimension."""


def places(architecture: Architecture) -> Iterator[Place]:
    """All tensors of an architecture, each once; those of a parameter follow each other in the order of its rows."""
    llama = architecture.kind == "llama"
    modules, parts = (_LLAMA_MODULES, ("weight",)) if llama else (_GPT_NEOX_MODULES, ("weight", "bias"))
    embedding, layers, norm = _LLAMA_NAMES if llama else _GPT_NEOX_NAMES
    yield _same_place(f"{embedding}.weight", "embedding.weight")
    for layer in range(architecture.layers):
        for module, names in modules.items():
            height = architecture.width if module == "qkv" else architecture.ffn_width
            for number, name in enumerate(names):
                rows = slice(number * height, (number + 1) * height) if len(names) > 1 else slice(None)
                for part in parts:
                    full = f"{layers}.{layer}.{name}.{part}"
                    yield Place(full, full, f"layers.{layer}.{module}.{part}", rows)
    for part in parts:
        yield _same_place(f"{norm}.{part}", f"norm.{part}")
    if not architecture.tied_embeddings:
        yield Place("lm_head.weight", "lm_head.weight" if llama else "embed_out.weight", "output.weight", slice(None))


_LLAMA_NAMES = ("model.embed_tokens", "model.layers", "model.norm")
_LLAMA_MODULES = {
    "attention_norm": ["input_layernorm"],
    "qkv": ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"],
    "attention_output": ["self_attn.o_proj"],
    "mlp_norm": ["post_attention_layernorm"],
    "gate_up": ["mlp.gate_proj", "mlp.up_proj"],
    "down": ["mlp.down_proj"],
}
_GPT_NEOX_NAMES = ("gpt_neox.embed_in", "gpt_neox.layers", "gpt_neox.final_layer_norm")
_GPT_NEOX_MODULES = {
    "attention_norm": ["input_layernorm"],
    "qkv": ["attention.query_key_value"],
    "attention_output": ["attention.dense"],
    "mlp_norm": ["post_attention_layernorm"],
    "up": ["mlp.dense_h_to_4h"],
    "down": ["mlp.dense_4h_to_h"],
}


def _same_place(name: str, parameter: str) -> Place:
    return Place(name, name, parameter, slice(None))


def huggingface_tensors(architecture: Architecture, parameters: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Views of `parameters`, by the names that the files of transformers have."""
    return {place.stored: parameters[place.parameter][place.rows] for place in places(architecture)}


def huggingface_rows(architecture: Architecture) -> dict[str, tuple[str, int]]:
    """Parameter and first row in it of each tensor in the files of transformers."""
    return {place.stored: (place.parameter, place.rows.start or 0) for place in places(architecture)}
