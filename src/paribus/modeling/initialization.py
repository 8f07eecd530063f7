"""Initial weights, which depend on the seed, a parameter's name and shape, and the token that a row stands for alone.

Two runs whose tokenizers differ start from the same layers, and from the same rows for the tokens that both have,
wherever their ids lie. Imports torch: import this module late.
"""

import hashlib
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import torch

from paribus.config.groups.model import DecoderModel, ModelConfig
from paribus.modeling.decoder import VOCABULARY, Decoder, places


@dataclass(frozen=True)
class InitialWeights:
    """Values that `initialize` gives the parameters of `decoder`, whose present values are not read."""

    decoder: Decoder
    model: DecoderModel
    """Group `model` as `resolve_model` returns it."""
    seed: int
    tokens: Sequence[bytes] | None
    """Distinct names of the tokens by id; None to draw rows by id, where no runs are to be compared."""

    def rows(self, name: str, start: int, stop: int) -> torch.Tensor:
        """Rows `start` to `stop` of the parameter `name`, float32 on the CPU; its other rows are drawn as well."""
        parameter = torch.empty(self.decoder.get_parameter(name).shape)
        matches = [place for place in places(self.decoder.architecture) if place.parameter == name]
        tensors = {place.name: parameter[place.rows] for place in matches}
        initialize(tensors, self.model, self.seed, tensors if name in VOCABULARY else (), self.tokens)
        return parameter[start:stop]


RESIDUAL_OUTPUTS = ("self_attn.o_proj", "mlp.down_proj", "attention.dense", "mlp.dense_4h_to_h")
"""Modules of causal language models whose output is added to the residual stream."""
ATTENTION_INPUTS = ("q_proj", "k_proj", "v_proj")


Fill = Callable[[torch.Tensor, torch.Generator], object]
"""Sets a tensor, or rows of one, to random numbers."""


def initialize(
    tensors: Mapping[str, torch.Tensor],
    model: ModelConfig,
    seed: int,
    vocabulary: Collection[str],
    tokens: Sequence[bytes] | None = None,
) -> None:
    """Set `tensors`, by the names of transformers: norms to 1, biases to 0, matrices as `model.initialization` says.

    Those named in `vocabulary` have a row for each token. `tokens` are distinct names of these by id, by which their
    rows are drawn; without names whole matrices are drawn, so that a row depends on its id.
    """
    with torch.no_grad():
        for name, tensor in tensors.items():
            if tensor.ndim == 1:
                tensor.fill_(0.0 if name.endswith("bias") else 1.0)
                continue
            fill, generator, start = _fill(tensor, name, model), torch.Generator(), f"{seed}:{name}".encode()
            if tokens is None or name not in vocabulary:
                fill(tensor, generator.manual_seed(_generator_seed(start)))
                continue
            for row, token in zip(tensor, tokens, strict=True):
                fill(row, generator.manual_seed(_generator_seed(start + b":" + token)))


def _generator_seed(name: bytes) -> int:
    """A seed for a generator; unrelated names have unrelated ones."""
    return int.from_bytes(hashlib.sha256(name).digest()[:8], "little") >> 1


def _fill(matrix: torch.Tensor, name: str, model: ModelConfig) -> Fill:
    """Function that draws all numbers of a matrix from its distribution."""
    if model.initialization == "xavier" and name != "model.shared.weight":
        bound = xavier_bound(matrix, name)
        return lambda part, generator: part.uniform_(-bound, bound, generator=generator)
    spread = deviation(model, name)
    return lambda part, generator: part.normal_(0.0, spread, generator=generator)


def deviation(model: ModelConfig, name: str) -> float:
    """Standard deviation of the normal distribution that the matrix `name` is drawn from.

    `depth_scaled`: Radford et al. 2019 (GPT-2), section 2.3. `small_init`: Nguyen and Salazar 2019 (arXiv 1910.05895),
    and for residual outputs Wang and Komatsuzaki 2021, as Black et al. 2022 (GPT-NeoX-20B, arXiv 2204.06745), section
    2.1, whose code takes the latter for attention too. `xavier`: embeddings as in fairseq, whose inputs are scaled by
    √width.
    """
    residual = name.removesuffix(".weight").endswith(RESIDUAL_OUTPUTS)
    match model.initialization:
        case "depth_scaled" if residual:
            return model.initializer_range / math.sqrt(2 * model.layers)
        case "small_init" if residual:
            return 2 / (model.layers * math.sqrt(model.width))
        case "small_init":
            return math.sqrt(2 / (5 * model.width))
        case "xavier":
            return 1 / math.sqrt(model.width)
    return model.initializer_range


def xavier_bound(matrix: torch.Tensor, name: str) -> float:
    """Half the width of the uniform distribution of Glorot and Bengio 2010, equation 16.

    Queries, keys and values count as one matrix, as in fairseq: its bound is smaller by √2.
    """
    outputs, inputs = matrix.shape
    if name.removesuffix(".weight").endswith(ATTENTION_INPUTS):
        outputs *= 3
    return math.sqrt(6 / (inputs + outputs))
