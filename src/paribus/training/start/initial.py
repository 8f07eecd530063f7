"""The model that training begins with: random weights, or those of a checkpoint with the run's vocabulary."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from transformers import GenerationConfig

from paribus.config.groups.start import CheckpointStart
from paribus.config.schema import RunConfig
from paribus.errors import ConfigurationError, DataError
from paribus.modeling.build import build_model, load_model
from paribus.tokenization import Tokenizer
from paribus.tokenization.interchange.existing import open_existing
from paribus.training.start.agreement import disagreements
from paribus.training.start.files import INDEX, weight_files
from paribus.training.start.locate import checkpoint_directory
from paribus.training.start.vocabulary import Rows, names, origins, same_tokens

_RENAMED = {"embed_out.weight": "lm_head.weight"}
"""How files of GPT-NeoX name what the model calls otherwise."""


def initial_model(config: RunConfig, tokenizer: Tokenizer) -> Any:
    """The model in float32 on the CPU, as `config.start` says; `tokenizer` is the run's.

    Raises ConfigurationError with everything in which the run and the checkpoint disagree, and DataError for files that
    are missing or broken.
    """
    if not isinstance(config.start, CheckpointStart):
        size, end = tokenizer.vocab_size, tokenizer.eos_id
        return build_model(config.model, size, config.seed_of("weights"), eos_id=end, tokens=names(tokenizer))
    directory = checkpoint_directory(config.start)
    found = list(disagreements(config.model, directory, longer_context=config.start.longer_context))
    if found:
        raise ConfigurationError("; ".join(f"{path}: {problem}" for path, problem in found))
    theirs = open_existing(directory)
    if config.start.vocabulary == "same":
        same_tokens(tokenizer, theirs, directory)
        return _adopted(_load(directory, theirs), config, tokenizer)
    rows = origins(tokenizer, theirs, directory)
    model = _load(directory, theirs)
    _rearrange(model, rows)
    return _adopted(model, config, tokenizer)


def _load(directory: Path, tokenizer: Tokenizer) -> Any:
    """The checkpoint's model with exactly the rows of its tokenizer; rows that pad a vocabulary are dropped."""
    try:
        model = load_model(directory)
        missing = _missing(model, directory)
    except (SafetensorError, RuntimeError) as error:
        raise DataError(f"{directory}: its weights cannot be read ({error}); copy the checkpoint again") from error
    if missing:
        raise DataError(f"{directory}: {len(missing)} weights are not in its files, such as {missing[0]}")
    rows = len(model.get_input_embeddings().weight)
    if rows < tokenizer.vocab_size:
        raise DataError(f"{directory}: its tokenizer has {tokenizer.vocab_size} tokens, its embedding only {rows} rows")
    if rows > tokenizer.vocab_size:
        model.resize_token_embeddings(tokenizer.vocab_size, mean_resizing=False)
    return model


def _missing(model: Any, directory: Path) -> list[str]:
    """Parameters that no file has, which transformers would fill with random numbers."""
    stored: set[str] = set()
    for path in weight_files(directory):
        if path.name != INDEX:
            with safe_open(path, "pt") as tensors:
                stored |= {_RENAMED.get(name, name) for name in list(tensors.keys())}
    state = model.state_dict()
    shared = {tensor.data_ptr() for name, tensor in state.items() if name in stored}
    return [name for name, tensor in state.items() if name not in stored and tensor.data_ptr() not in shared]


def _rearrange(model: Any, rows: Sequence[Rows]) -> None:
    """Give the token of each id the mean of `rows` of the embedding, and of the output layer where it has its own."""
    before = [layer.weight.detach().clone() for layer in _vocabulary_layers(model)]
    model.resize_token_embeddings(len(rows), mean_resizing=False)
    with torch.no_grad():
        for layer, old in zip(_vocabulary_layers(model), before, strict=True):
            kept = [(row, of[0]) for row, of in enumerate(rows) if len(of) == 1]
            places, sources = (torch.tensor(column) for column in zip(*kept, strict=True))
            layer.weight[places] = old[sources]
            for row, of in enumerate(rows):
                if len(of) > 1:
                    layer.weight[row] = old[torch.from_numpy(of)].mean(dim=0)


def _vocabulary_layers(model: Any) -> list[Any]:
    """The input embedding, and the output layer unless it is the same matrix."""
    embedding, output = model.get_input_embeddings(), model.get_output_embeddings()
    return [embedding] if output.weight is embedding.weight else [embedding, output]


def _adopted(model: Any, config: RunConfig, tokenizer: Tokenizer) -> Any:
    """The model with the run's context length and special tokens, and with nothing else of where it comes from."""
    settings = {"bos_token_id": None, "eos_token_id": tokenizer.eos_id, "pad_token_id": None, "use_cache": False}
    model.config.update(settings | {"max_position_embeddings": config.model.context_length})
    model.generation_config = GenerationConfig.from_model_config(model.config)
    return model
