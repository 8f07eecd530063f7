"""Bytes that a decoder keeps between forward and backward pass, by formula.

Listed tensor by tensor as autograd saves them for the layers of `decoder` under scaled dot-product attention; exact for
layers that are not compiled, and within some percent for those that are. `paribus plan` uses this, so nothing heavy may
be imported here.
"""

from dataclasses import dataclass

from paribus.config.groups.model import DecoderModel, GPTNeoXModel, LlamaModel
from paribus.modeling.problems import rotated_width

FLOAT32, BFLOAT16, INT64, BOOL = 4, 2, 8, 1


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


def kept_per_token(model: DecoderModel, number: int) -> Kept:
    """What a token keeps in each layer and after the last; `number` are the bytes of one in the residual stream."""
    match model:
        case LlamaModel():
            return _llama(model, number)
        case GPTNeoXModel():
            return _gpt_neox(model, number)


def _llama(model: LlamaModel, number: int) -> Kept:
    """An RMSNorm saves its input and 1 / root mean square, and is itself saved.

    Attention saves queries, keys and values, its output and the logarithms of the softmax' sums; SwiGLU both factors
    and their product. Its backward pass holds most where the product is taken apart: the incoming gradient, those of
    the product and of both factors, and one of these in the making, the product being freed.
    """
    w, f, sums = model.width, model.ffn_width, FLOAT32 * model.heads
    norm = number * 2 * w + FLOAT32
    layer = 2 * norm + number * (4 * w + 3 * f) + sums
    final = number * w + FLOAT32
    return Kept(layer, number * w, number * (w + 3 * f), final, number * 2 * w)


def _gpt_neox(model: GPTNeoXModel, number: int) -> Kept:
    """A LayerNorm saves its input, mean and 1 / deviation, and is itself saved.

    Attention saves as Llama's does; the feed-forward layer its inside before and after GELU. Without parallel residual,
    both norms have their own input.
    """
    w, f, sums = model.width, model.ffn_width, FLOAT32 * model.heads
    inputs = 1 if model.parallel_residual else 2
    layer = number * ((inputs + 2 + 3 + 1) * w + 2 * f + 4) + sums
    return Kept(layer, number * w, number * (w + f), number * (w + 2), number * 2 * w)


def flash_takes(head_width: int) -> bool:
    """Whether PyTorch's flash attention of documents on a GPU has a kernel for heads of that width."""
    return head_width % 8 == 0 and head_width <= 256


def rotary_bytes(model: DecoderModel) -> int:
    """Cosines and sines of all positions, which layers and rows share."""
    rotated = rotated_width(model) if isinstance(model, GPTNeoXModel) else model.width // model.heads
    return model.context_length * rotated * FLOAT32


def cast_elements(model: DecoderModel) -> int:
    """Elements of a layer's weights that the backward pass needs in bfloat16: all but the matrices' biases."""
    matrices, norms = (3, 2) if isinstance(model, LlamaModel) else (2, 4)
    return 4 * model.width**2 + matrices * model.width * model.ffn_width + norms * model.width


def final_norm_elements(model: DecoderModel) -> int:
    """Elements of the norm after the last layer."""
    return model.width if isinstance(model, LlamaModel) else 2 * model.width
