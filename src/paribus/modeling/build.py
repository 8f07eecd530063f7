"""Build, save and load a model as a Hugging Face directory. Imports torch: import this module late."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from paribus.config.groups.model import ModelConfig
from paribus.errors import ConfigurationError, DataError
from paribus.modeling.families import MODEL_TYPES, model_class, transformers_config
from paribus.modeling.initialize import initialize
from paribus.modeling.match import resolve_model
from paribus.modeling.problems import check_shape

WHOLE = "1TB"
"""Weights are one file, however large."""
WEIGHTS = "model.safetensors"
"""That file."""


def build_model(
    model: ModelConfig,
    vocab_size: int,
    seed: int,
    *,
    eos_id: int | None = None,
    tokens: Sequence[bytes] | None = None,
) -> Any:
    """A transformers model with `vocab_size` tokens in float32 on the CPU, its weights set by `initialize`.

    `tokens` are their distinct names by id, by which their rows are drawn; where nothing is to be compared, none.
    The global random state is neither read nor changed. An encoder-decoder needs `eos_id`. Raises ConfigurationError
    for a shape that cannot be.
    """
    check_shape(model)
    resolved = resolve_model(model, vocab_size)
    config = transformers_config(resolved, vocab_size, eos_id)
    with torch.random.fork_rng(devices=[]):
        built = model_class(config.model_type)(config).float()
    initialize(built, resolved, seed, tokens)
    return built


def save_model(model: Any, directory: Path, weights: dict[str, torch.Tensor] | None = None) -> None:
    """Write `config.json` and `model.safetensors` (float32) of an unwrapped model into `directory`.

    `weights`, if given, are written in place of the model's own.
    """
    model.save_pretrained(directory, state_dict=weights, max_shard_size=WHOLE)


def load_model(directory: Path) -> Any:
    """The model saved in `directory`, in float32 on the CPU; only safetensors files are read, and no code.

    Raises DataError for a directory without a readable `config.json`, ConfigurationError for a family unknown here.
    """
    return model_class(_model_type(directory)).from_pretrained(
        directory, dtype=torch.float32, use_safetensors=True, local_files_only=True, attn_implementation="sdpa"
    )


def _model_type(directory: Path) -> str:
    path = directory / "config.json"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))["model_type"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path} does not say which model this is: {error!r}") from error
    if found not in MODEL_TYPES:
        raise ConfigurationError(f"{path}: model_type {found!r} is unknown here; known: {', '.join(MODEL_TYPES)}")
    return str(found)
