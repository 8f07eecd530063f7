"""The two parts of a causal language model that loss and scores need, whatever its family."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import torch

from paribus.errors import ConfigurationError


class DecoderParts(NamedTuple):
    """What is before and what is in the output layer; logits are `hidden states @ output_weight.T`."""

    base: torch.nn.Module
    """Called as transformers models are, gives an object with `last_hidden_state` (rows, length, width)."""
    output_weight: torch.Tensor
    """(vocabulary size, width), the model's own parameter; the input embedding itself where the two are shared."""


def decoder_parts(model: Any) -> DecoderParts:
    """The parts of an unwrapped causal language model, so that logits need not be materialised.

    Raises ConfigurationError for a model that is no causal language model of a known family.
    """
    match model.config.model_type:
        case "llama":
            return DecoderParts(model.model, model.lm_head.weight)
        case "gpt_neox":
            return DecoderParts(model.gpt_neox, model.lm_head.weight)
        case other:
            raise ConfigurationError(
                f"model_type {other!r} is no causal language model that is known here; known: llama, gpt_neox"
            )


def stacked_layers(model: Any) -> list[torch.nn.Module]:
    """All layers of an unwrapped model, first to last; of an encoder-decoder the encoder's, then the decoder's."""
    if model.config.is_encoder_decoder:
        return [*model.model.encoder.layers, *model.model.decoder.layers]
    return decoder_layers(model)


def decoder_layers(model: Any) -> list[torch.nn.Module]:
    """The layers of an unwrapped causal language model, first to last."""
    layers: Iterable[torch.nn.Module] = decoder_parts(model).base.layers  # type: ignore[assignment]
    return list(layers)
