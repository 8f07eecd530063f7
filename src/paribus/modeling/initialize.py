"""Initial weights, from the seed, a parameter's name and its shape only.

Two runs whose tokenizers differ start from the same layers, and from the same embedding where their vocabularies have
one size. Imports torch: import this module late.
"""

import hashlib
import math

import torch

from paribus.config.groups.model import ModelConfig

RESIDUAL_OUTPUTS = ("self_attn.o_proj", "mlp.down_proj", "attention.dense", "mlp.dense_4h_to_h")
"""Modules of causal language models whose output is added to the residual stream."""
ATTENTION_INPUTS = ("q_proj", "k_proj", "v_proj")


def initialize(built: torch.nn.Module, model: ModelConfig, seed: int) -> None:
    """Set every trained parameter: norms to 1, biases to 0, matrices as `model.initialization` says."""
    with torch.no_grad():
        for name, parameter in built.named_parameters():
            if parameter.ndim == 1:
                parameter.fill_(0.0 if name.endswith("bias") else 1.0)
            elif parameter.requires_grad:
                _draw(parameter, name, model, _generator(seed, name))


def _generator(seed: int, name: str) -> torch.Generator:
    digest = hashlib.sha256(f"{seed}:{name}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "little") >> 1)


def _draw(matrix: torch.Tensor, name: str, model: ModelConfig, generator: torch.Generator) -> None:
    if model.initialization == "xavier" and not _is_embedding(name):
        bound = xavier_bound(matrix, name)
        matrix.uniform_(-bound, bound, generator=generator)
    else:
        matrix.normal_(0.0, deviation(model, name), generator=generator)


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


def _is_embedding(name: str) -> bool:
    return name == "model.shared.weight"
