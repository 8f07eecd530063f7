"""Bytes that a causal language model keeps between forward and backward pass, by formula.

Listed tensor by tensor as autograd saves them for the classes of transformers under scaled dot-product attention; exact
for layers that are not compiled. `paribus plan` uses this, so nothing heavy may be imported here.
"""

import dataclasses
from dataclasses import dataclass
from typing import Literal

from paribus.config.groups.model import DecoderModel, GPTNeoXModel, LlamaModel
from paribus.modeling.problems import rotated_width

FLOAT32, BFLOAT16, INT64, BOOL = 4, 2, 8, 1
Arithmetic = Literal["fp32", "autocast", "cast"]
"""float32; bfloat16 by autocast, the residual stream in float32; or parameters cast to bfloat16, as FSDP does."""


@dataclass(frozen=True)
class Kept:
    """Bytes a token, all layers being alike."""

    layer: int
    """Saved in a layer, its input included."""
    layer_input: int
    """What is left of that with activation checkpointing."""
    layer_backward: int
    """More than what a layer saved, at the most that its backward pass holds; the gradient it begins with included."""
    final: int
    """Saved by the norm after the last layer, its input included."""
    final_backward: int
    """More than what is saved, at the most that the backward pass of that norm holds."""


def kept_per_token(model: DecoderModel, arithmetic: Arithmetic, *, gpu: bool, compiled: bool) -> Kept:
    """What a token keeps in each layer and after the last."""
    match model:
        case LlamaModel():
            kept, compiled_layer = _llama(model, arithmetic), _compiled_llama(model, arithmetic)
        case GPTNeoXModel():
            kept, compiled_layer = _gpt_neox(model, arithmetic, gpu=gpu), _compiled_gpt_neox(model, arithmetic)
    return dataclasses.replace(kept, layer=compiled_layer) if compiled else kept


def _compiled_llama(model: LlamaModel, arithmetic: Arithmetic) -> int:
    """What torch.compile keeps of a layer: inputs and outputs of matrices, the rest is computed again.

    Input, normalized input, queries, keys, values, outputs of attention before and after its matrix, normalized middle;
    both halves of SwiGLU and their product; two root mean squares.
    """
    wide, narrow = _widths(arithmetic)
    inner = 3 * model.ffn_width
    return wide * model.width + narrow * (7 * model.width + inner) + FLOAT32 * (model.heads + 2)


def _compiled_gpt_neox(model: GPTNeoXModel, arithmetic: Arithmetic) -> int:
    """As `_compiled_llama`; nine outputs of the width of the model, and the inside of the feed-forward layer twice."""
    wide, narrow = _widths(arithmetic)
    inner = 2 * model.ffn_width
    return wide * model.width + narrow * (9 * model.width + inner) + FLOAT32 * (model.heads + 2)


def _widths(arithmetic: Arithmetic) -> tuple[int, int]:
    """Bytes of a number in the residual stream, and between matrices."""
    return BFLOAT16 if arithmetic == "cast" else FLOAT32, FLOAT32 if arithmetic == "fp32" else BFLOAT16


def _llama(model: LlamaModel, arithmetic: Arithmetic) -> Kept:
    """An RMSNorm saves its input in float32, 1 / root mean square, the normalized input, and is itself saved.

    Attention saves queries, keys and values after rotation, its output and the logarithms of the softmax' sums; SwiGLU
    the gate before and after SiLU, the other half and their product. Its backward pass holds most where the product is
    taken apart: the incoming gradient and those of both factors, the product being freed.
    """
    w, f, sums = model.width, model.ffn_width, FLOAT32 * model.heads
    match arithmetic:
        case "fp32":
            norm = FLOAT32 * (3 * w + 1)
            layer = 2 * norm + FLOAT32 * (4 * w + 4 * f) + sums
            return Kept(layer, 4 * w, FLOAT32 * (w + 2 * f), FLOAT32 * (2 * w + 1), FLOAT32 * 4 * w)
        case "autocast":
            # Each linear layer casts its input for itself: three times for attention, two times for SwiGLU.
            norm = FLOAT32 * (2 * w + 1)
            layer = 2 * norm + BFLOAT16 * ((3 + 2) * w + 4 * w + 4 * f) + sums
            return Kept(layer, 4 * w, 6 * w + BFLOAT16 * 2 * f, norm, FLOAT32 * 4 * w)
        case "cast":
            norm = FLOAT32 * (w + 1) + BFLOAT16 * 2 * w
            layer = 2 * norm + BFLOAT16 * (4 * w + 4 * f) + sums
            final = FLOAT32 * (w + 1) + BFLOAT16 * w
            return Kept(layer, 2 * w, BFLOAT16 * (w + 2 * f), final, FLOAT32 * 3 * w + BFLOAT16 * w)


def _gpt_neox(model: GPTNeoXModel, arithmetic: Arithmetic, *, gpu: bool) -> Kept:
    """A LayerNorm saves its input, mean and 1 / deviation, and is itself saved.

    Attention saves queries and keys after rotation, and values as part of the one product of all three; the
    feed-forward layer its inside before and after GELU. On a CPU attention's output has the layout of its queries, here
    (heads, length), so it is copied for the next matrix. Without parallel residual, both norms have their own input.
    """
    w, f, sums = model.width, model.ffn_width, FLOAT32 * model.heads
    # Outputs of both norms, queries, keys, the product of all three, the output of attention and its copy.
    matrices = (2 + 2 + 3 + 1 + (0 if gpu else 1)) * w + 2 * f
    wide, narrow = _widths(arithmetic)
    inputs, statistics = 1 if model.parallel_residual else 2, 2 * wide
    layer = inputs * wide * w + 2 * statistics + narrow * matrices + sums
    gradients = wide * w + (0 if wide == narrow else narrow * w)
    final_backward = 2 * wide * w + (0 if wide == narrow else narrow * w)
    return Kept(layer, wide * w, gradients + narrow * f, wide * w + statistics, final_backward)


def rotary_bytes(model: DecoderModel, arithmetic: Arithmetic) -> int:
    """Cosines and sines of all positions, which layers and rows share."""
    rotated = rotated_width(model) if isinstance(model, GPTNeoXModel) else model.width // model.heads
    return 2 * model.context_length * rotated * (BFLOAT16 if arithmetic == "cast" else FLOAT32)


def cast_parameters(model: DecoderModel) -> int:
    """Elements of a layer's matrices; autocast keeps a copy of them in bfloat16 for the backward pass."""
    matrices = 3 if isinstance(model, LlamaModel) else 2
    return 4 * model.width**2 + matrices * model.width * model.ffn_width
