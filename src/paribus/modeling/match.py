"""Models of different vocabulary sizes with equal parameters: the option `model.match`.

Whoever builds a model or counts its parameters or FLOPs does so with the shape that `resolve_model` gives, so that they
cannot disagree. Nothing heavy may be imported here.
"""

import dataclasses
from fractions import Fraction
from typing import TypeVar

from paribus.config.groups.model import ModelConfig
from paribus.errors import ConfigurationError
from paribus.modeling.shape import stack_parameters, vocabulary_matrices

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
        raise ConfigurationError(_refusal(model, vocab_size, surplus, unit))
    return dataclasses.replace(model, ffn_width=width, match="non_embedding")


def _refusal(model: Model, vocab_size: int, surplus: int, unit: int) -> str:
    return (
        f"model.match: total cannot be kept, since {vocab_size:,} tokens have {surplus:,} parameters more than "
        f"model.reference_vocab_size={model.reference_vocab_size:,} and all feed-forward layers of "
        f"model.ffn_width={model.ffn_width} have {unit * model.ffn_width:,}; take a larger model, a larger "
        "model.reference_vocab_size or model.match=non_embedding"
    )
