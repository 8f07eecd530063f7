"""Contexts and batches that are given in bytes of text, as tokens and contexts once the text is encoded and packed."""

from collections.abc import Iterator
from dataclasses import replace

from paribus.config.groups.model import EncoderDecoderModel, ModelConfig
from paribus.config.groups.training import TrainingConfig
from paribus.config.schema import RunConfig
from paribus.errors import ConfigurationError

TOKENS = 8
"""A context in bytes is a multiple of so many tokens, which matrix units like."""


def in_tokens(model: ModelConfig, bytes_per_token: float) -> ModelConfig:
    """The model with the context length in tokens; of `context_bytes` the nearest multiple of 8, and 8 at least.

    `bytes_per_token` is the mean of the training split, whose documents end in a token each that stands for no byte.
    """
    if model.context_bytes is None:
        return model
    _refuse_no_text("model.context_bytes", model.context_bytes, bytes_per_token)
    length = max(TOKENS, round(model.context_bytes / bytes_per_token / TOKENS) * TOKENS)
    return replace(model, context_length=length, context_bytes=None)


def in_contexts(training: TrainingConfig, bytes_per_context: float) -> TrainingConfig:
    """The training with its global batch in contexts; of `batch_bytes` the nearest multiple of `batch_multiple`.

    `bytes_per_context` is the mean of the contexts that training reads.
    """
    if training.batch_bytes is None:
        return training
    _refuse_no_text("training.batch_bytes", training.batch_bytes, bytes_per_context)
    multiples = max(1, round(training.batch_bytes / bytes_per_context / training.batch_multiple))
    return replace(training, global_batch=multiples * training.batch_multiple, batch_bytes=None, batch_multiple=1)


def divided(training: TrainingConfig) -> tuple[str, int]:
    """Path and value of what processes must share evenly: the global batch, or what it is a multiple of."""
    if training.batch_bytes is None:
        return "training.global_batch", training.global_batch
    return "training.batch_multiple", training.batch_multiple


def impossible_byte_sizes(config: RunConfig) -> Iterator[tuple[str, str]]:
    """(path, what is wrong and what would be right) of sizes that are given twice or not at all."""
    model, training = config.model, config.training
    if model.context_bytes is not None and model.context_length:
        message = f"{model.context_bytes} bytes beside model.context_length={model.context_length} tokens"
        yield "model.context_bytes", f"{message}; set model.context_length=0, or leave model.context_bytes out"
    if model.context_bytes is not None and isinstance(model, EncoderDecoderModel):
        message = "is for contexts of documents, and model.kind=encoder_decoder reads pairs"
        yield "model.context_bytes", f"{message}; set model.context_length"
    if training.batch_bytes is not None and training.global_batch:
        message = f"{training.batch_bytes} bytes beside training.global_batch={training.global_batch} contexts"
        yield "training.batch_bytes", f"{message}; set training.global_batch=0, or leave training.batch_bytes out"
    if training.batch_bytes is None and not training.global_batch:
        yield (
            "training.global_batch",
            "must be above 0, or 0 where training.batch_bytes says how much text a step reads",
        )
    if training.batch_bytes is None and training.batch_multiple > 1:
        message = "rounds what training.batch_bytes gives, which is null"
        yield "training.batch_multiple", f"{message}; leave it out"


def _refuse_no_text(path: str, size: int, mean: float) -> None:
    if not mean:
        raise ConfigurationError(f"{path}={size} cannot be reached: the tokens stand for no text at all")
