"""Parameters, training FLOPs and bytes of a model, exact and without building it.

`paribus plan` uses this, so nothing heavy may be imported here.
"""

from paribus.config.groups.model import ModelConfig

FLOAT32_BYTES = 4
OPTIMIZER_MOMENTS = 2


def embedding_parameters(model: ModelConfig, vocab_size: int) -> int:
    """Parameters of the input embedding that no token is multiplied with (0 where the output layer shares them)."""
    return 0 if model.tied_embeddings else vocab_size * model.width


def layer_parameters(model: ModelConfig) -> int:
    """Parameters of one decoder layer: four attention matrices, three SwiGLU matrices, two norms."""
    attention = 4 * model.width**2
    feed_forward = 3 * model.width * model.ffn_width
    return attention + feed_forward + 2 * model.width


def parameter_count(model: ModelConfig, vocab_size: int) -> int:
    """All parameters of the model with `vocab_size` embedding rows; equal to what PyTorch counts."""
    output_layer = vocab_size * model.width
    final_norm = model.width
    decoder = model.layers * layer_parameters(model)
    return embedding_parameters(model, vocab_size) + decoder + final_norm + output_layer


def flops_per_token(model: ModelConfig, vocab_size: int) -> int:
    """Training FLOPs of one token, forward and backward: 6 N + 12 · layers · width · context length.

    The formula is that of Chowdhery et al. 2022 (PaLM, arXiv 2204.02311), appendix B. N counts the parameters a token
    is multiplied with: all but the input embedding, which is a look-up; an output layer that shares its matrix counts.
    The second term is attention over a full context; that half of it is masked is not subtracted.
    """
    multiplied = parameter_count(model, vocab_size) - embedding_parameters(model, vocab_size)
    return 6 * multiplied + 12 * model.layers * model.width * model.context_length


def training_flops(model: ModelConfig, vocab_size: int, tokens: int) -> int:
    """FLOPs of training on `tokens` input tokens, see `flops_per_token`.

    Padding is computed like any token and counts; that a mask may keep attention inside documents is not subtracted.
    """
    return flops_per_token(model, vocab_size) * tokens


def checkpoint_bytes(model: ModelConfig, vocab_size: int) -> int:
    """Bytes of the weights of one checkpoint, stored as float32."""
    return FLOAT32_BYTES * parameter_count(model, vocab_size)


def optimizer_bytes(model: ModelConfig, vocab_size: int) -> int:
    """Bytes of AdamW's two moments, stored as float32."""
    return OPTIMIZER_MOMENTS * FLOAT32_BYTES * parameter_count(model, vocab_size)


def artefact_bytes(model: ModelConfig, vocab_size: int, checkpoints: int) -> int:
    """Bytes of a `checkpoints` artefact that keeps `checkpoints` models and the last optimizer state."""
    return checkpoints * checkpoint_bytes(model, vocab_size) + optimizer_bytes(model, vocab_size)
