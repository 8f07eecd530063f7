"""Parameters, training FLOPs and bytes of a model, exact and without building it.

All are those of the model as it is built with `vocab_size` tokens (`match.resolve_model`). `paribus plan` uses this, so
nothing heavy may be imported here.
"""

from paribus.config.groups.model import EncoderDecoderModel, ModelConfig
from paribus.modeling.match import resolve_model
from paribus.modeling.shape import encoder_parameters, source_projections, stack_parameters, vocabulary_matrices

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
    return encoder_parameters(model) + source_projections(model)


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
