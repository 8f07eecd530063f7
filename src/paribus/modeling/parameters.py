"""Parameters, training FLOPs and bytes of a model, exact and without building it; and its `model.match`.

Models of different vocabulary sizes get equal parameters by the option `model.match`. Whoever builds a model or counts
its parameters or FLOPs does so with the shape that `resolve_model` gives, so that they cannot disagree. `paribus plan`
uses this, so nothing heavy may be imported here.
"""

import dataclasses
from collections.abc import Iterator
from fractions import Fraction
from typing import TypeVar

from paribus.config.groups.model import EncoderDecoderModel, GPTNeoXModel, LlamaModel, ModelConfig
from paribus.errors import ConfigurationError, Problem

FLOAT32_BYTES = 4
OPTIMIZER_MOMENTS = 2


def embedding_parameters(model: ModelConfig, vocab_size: int) -> int:
    """Parameters with a row for each token: the input embedding and the output matrix, once where they are shared."""
    return vocabulary_matrices(model) * vocab_size * model.width


def non_embedding_parameters(model: ModelConfig, vocab_size: int) -> int:
    """All other parameters; with match=non_embedding the same for every `vocab_size`."""
    return stack_parameters(resolve_model(model, vocab_size))


def parameter_count(model: ModelConfig, vocab_size: int) -> int:
    """All trained parameters of the model with `vocab_size` tokens; equal to what PyTorch counts."""
    return embedding_parameters(model, vocab_size) + non_embedding_parameters(model, vocab_size)


def flops_per_token(model: ModelConfig, vocab_size: int) -> int:
    """Training FLOPs of one token, forward and backward: 6 N + 12 · layers · width · context length.

    The formula is that of Chowdhery et al. 2022 (PaLM, arXiv 2204.02311), appendix B. N counts the parameters a token
    is multiplied with: all but the input embedding, which is a look-up; an output layer that shares its matrix counts.
    The second term is attention over a full context; that half of it is masked is not subtracted.

    With encoder_decoder this is a token of the target: N is the decoder, without the keys and values of the source, and
    the output matrix; the second term counts attention to the target and to the source, both of the context length. Its
    source token is `source_flops_per_token`.
    """
    output, attention = vocab_size * model.width, 12 * model.width * model.context_length
    stack = non_embedding_parameters(model, vocab_size)
    if isinstance(model, EncoderDecoderModel):
        decoder = stack - _source_parameters(resolve_model(model, vocab_size))
        return 6 * (decoder + output) + 2 * model.decoder_layers * attention
    return 6 * (stack + output) + model.layers * attention


def source_flops_per_token(model: ModelConfig, vocab_size: int) -> int:
    """Training FLOPs of one token of a source, forward and backward; 0 for a causal language model.

    As `flops_per_token`, N being the encoder and the decoder's keys and values of the source.
    """
    if not isinstance(model, EncoderDecoderModel):
        return 0
    attention = 12 * model.encoder_layers * model.width * model.context_length
    return 6 * _source_parameters(resolve_model(model, vocab_size)) + attention


def _source_parameters(model: EncoderDecoderModel) -> int:
    """Parameters of the encoder, and those by which decoder layers make keys and values of a source token."""
    return encoder_parameters(model) + model.decoder_layers * 2 * (model.width**2 + model.width)


def training_flops(model: ModelConfig, vocab_size: int, tokens: int, source_tokens: int = 0) -> int:
    """FLOPs of training on `tokens` input tokens, and with encoder_decoder on `source_tokens` of sources.

    Padding is computed like any token and counts; that a mask may keep attention inside documents is not subtracted.
    """
    source = source_flops_per_token(model, vocab_size) * source_tokens
    return flops_per_token(model, vocab_size) * tokens + source


def checkpoint_bytes(model: ModelConfig, vocab_size: int) -> int:
    """Bytes of the weights of one checkpoint, stored as float32."""
    constants = vocab_size if isinstance(model, EncoderDecoderModel) else 0  # Marian stores a bias of zeros
    return FLOAT32_BYTES * (parameter_count(model, vocab_size) + constants)


def optimizer_bytes(model: ModelConfig, vocab_size: int) -> int:
    """Bytes of AdamW's two moments, stored as float32."""
    return OPTIMIZER_MOMENTS * FLOAT32_BYTES * parameter_count(model, vocab_size)


def artefact_bytes(model: ModelConfig, vocab_size: int, checkpoints: int) -> int:
    """Bytes of a `training` artefact that keeps `checkpoints` models and the last optimizer state."""
    return checkpoints * checkpoint_bytes(model, vocab_size) + optimizer_bytes(model, vocab_size)


def check_shape(model: ModelConfig) -> Iterator[Problem]:
    """Yield the problems that a shape has with any vocabulary."""
    head = model.width // model.heads
    match model:
        case _ if model.width % model.heads:
            yield Problem("model.heads", f"{model.heads} does not divide model.width={model.width}")
        case LlamaModel() if head % 2:
            yield Problem("model.heads", f"model.width / model.heads = {head} must be even (rotary positions)")
        case GPTNeoXModel() if rotated_width(model) % 2 or not rotated_width(model):
            rotated = f"model.rotary_fraction={model.rotary_fraction} of model.width / model.heads = {head}"
            message = f"{rotated} is {rotated_width(model)}; it must be even and at least 2"
            yield Problem("model.rotary_fraction", message)
        case EncoderDecoderModel() if model.context_length > model.positions:
            message = f"{model.context_length} exceeds the table of model.positions={model.positions}"
            yield Problem("model.context_length", message)
    if model.context_length < 2 and model.context_bytes is None:
        message = "must be at least 2, or 0 where model.context_bytes says how much text it holds"
        yield Problem("model.context_length", message)


def rotated_width(model: GPTNeoXModel) -> int:
    """Components of each head that carry a rotary position, rounded down as transformers does."""
    return int(model.width // model.heads * model.rotary_fraction)


def check_match(model: ModelConfig, vocab_size: int) -> Iterator[Problem]:
    """Yield a problem where the shape cannot be matched at this vocabulary size."""
    try:
        resolve_model(model, vocab_size)
    except ConfigurationError as error:
        yield from error.problems


def require_shape(model: ModelConfig) -> None:
    """Raise ConfigurationError where `check_shape` has problems."""
    if problems := [*check_shape(model)]:
        raise ConfigurationError(*problems)


FFN_STEP = 8
"""Widths of feed-forward layers that are computed are multiples of this, as matrix units of processors like them."""

Model = TypeVar("Model", bound=ModelConfig)


def resolve_model(model: Model, vocab_size: int) -> Model:
    """The model as it is built with `vocab_size` tokens; resolving a second time changes nothing.

    With match=total, `ffn_width` becomes the multiple of 8 whose total is nearest to that of the shape as written with
    `reference_vocab_size` tokens. Raises ConfigurationError where not even a width of 8 is small enough.
    """
    if model.match == "non_embedding" or vocab_size == model.reference_vocab_size:
        return dataclasses.replace(model, match="non_embedding")
    unit = stack_parameters(dataclasses.replace(model, ffn_width=model.ffn_width + 1)) - stack_parameters(model)
    surplus = (vocab_size - model.reference_vocab_size) * vocabulary_matrices(model) * model.width
    width = FFN_STEP * round((model.ffn_width - Fraction(surplus, unit)) / FFN_STEP)
    if width < FFN_STEP:
        message = (
            f"total cannot be kept, since {vocab_size:,} tokens have {surplus:,} parameters more than "
            f"model.reference_vocab_size={model.reference_vocab_size:,} and all feed-forward layers of "
            f"model.ffn_width={model.ffn_width} have {unit * model.ffn_width:,}; take a larger model, a larger "
            "model.reference_vocab_size or model.match=non_embedding"
        )
        raise ConfigurationError(Problem("model.match", message))
    return dataclasses.replace(model, ffn_width=width, match="non_embedding")


def vocabulary_matrices(model: ModelConfig) -> int:
    """Matrices with a row for each token: one where input and output share it, else two."""
    return 1 if isinstance(model, EncoderDecoderModel) or model.tied_embeddings else 2


def stack_parameters(model: ModelConfig) -> int:
    """Parameters outside the matrices of the vocabulary: layers, and what stands between them and the output matrix.

    The table of sinusoidal positions is a constant and no parameter.
    """
    match model:
        case LlamaModel():  # in a layer four attention matrices, three of SwiGLU and two RMSNorms
            layer = 4 * model.width**2 + 3 * model.width * model.ffn_width + 2 * model.width
            return model.layers * layer + model.width
        case GPTNeoXModel():  # in a layer attention and feed-forward layer with biases and two LayerNorms
            layer = _biased_attention(model.width) + _biased_feed_forward(model) + 4 * model.width
            return model.layers * layer + 2 * model.width
        case EncoderDecoderModel():
            return encoder_parameters(model) + decoder_parameters(model)


def encoder_parameters(model: EncoderDecoderModel) -> int:
    """Encoder layers: attention and feed-forward layer with biases, a LayerNorm after each."""
    return model.encoder_layers * (_biased_attention(model.width) + _biased_feed_forward(model) + 4 * model.width)


def decoder_parameters(model: EncoderDecoderModel) -> int:
    """Decoder layers: attention to the target, attention to the source, feed-forward layer, a LayerNorm after each."""
    layer = 2 * _biased_attention(model.width) + _biased_feed_forward(model) + 6 * model.width
    return model.decoder_layers * layer


def _biased_attention(width: int) -> int:
    return 4 * (width**2 + width)


def _biased_feed_forward(model: GPTNeoXModel | EncoderDecoderModel) -> int:
    return 2 * model.width * model.ffn_width + model.ffn_width + model.width
