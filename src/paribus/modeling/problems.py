"""What no family can be built with; `paribus plan` uses this, so nothing heavy may be imported here."""

from collections.abc import Iterator

from paribus.config.groups.model import EncoderDecoderModel, GPTNeoXModel, LlamaModel, ModelConfig
from paribus.errors import ConfigurationError
from paribus.modeling.match import resolve_model


def shape_problems(model: ModelConfig) -> Iterator[tuple[str, str]]:
    """(path, what is wrong and what would be right) of a shape, whatever the vocabulary."""
    if model.width % model.heads:
        yield "model.heads", f"{model.heads} does not divide model.width={model.width}"
    else:
        yield from _position_problems(model, model.width // model.heads)
    if model.context_length < 2 and model.context_bytes is None:
        yield "model.context_length", "must be at least 2, or 0 where model.context_bytes says how much text it holds"


def _position_problems(model: ModelConfig, head: int) -> Iterator[tuple[str, str]]:
    match model:
        case LlamaModel() if head % 2:
            yield "model.heads", f"model.width / model.heads = {head} must be even (rotary positions)"
        case GPTNeoXModel() if rotated_width(model) % 2 or not rotated_width(model):
            rotated = f"model.rotary_fraction={model.rotary_fraction} of model.width / model.heads = {head}"
            yield "model.rotary_fraction", f"{rotated} is {rotated_width(model)}; it must be even and at least 2"
        case EncoderDecoderModel() if model.context_length > model.positions:
            yield (
                "model.context_length",
                f"{model.context_length} exceeds the table of model.positions={model.positions}",
            )


def rotated_width(model: GPTNeoXModel) -> int:
    """Components of each head that carry a rotary position, rounded down as transformers does."""
    return int(model.width // model.heads * model.rotary_fraction)


def match_problems(model: ModelConfig, vocab_size: int) -> Iterator[tuple[str, str]]:
    """(path, what is wrong) where the shape cannot be matched at this vocabulary size."""
    try:
        resolve_model(model, vocab_size)
    except ConfigurationError as error:
        yield "model.match", str(error).removeprefix("model.match: ")


def check_shape(model: ModelConfig) -> None:
    """Raise ConfigurationError for the first of `shape_problems`."""
    for path, message in shape_problems(model):
        raise ConfigurationError(f"{path}: {message}")
