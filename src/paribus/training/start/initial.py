"""The model that training begins with: random weights, or those of a checkpoint with the run's vocabulary."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from paribus.config.groups.model import CheckpointStart
from paribus.config.schema import RunConfig
from paribus.errors import ConfigurationError, DataError
from paribus.modeling.decoder import VOCABULARY, Decoder
from paribus.modeling.models import build_model, load_decoder
from paribus.tokenization import Tokenizer
from paribus.tokenization.existing import open_existing
from paribus.training.start.agreement import disagreements
from paribus.training.start.locate import checkpoint_directory
from paribus.training.start.vocabulary import Rows, names, origins, same_tokens


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
        rows = [np.array([row]) for row in range(theirs.vocab_size)]
    else:
        rows = origins(tokenizer, theirs, directory)
    return _adopted(_load(directory, theirs), rows, config, tokenizer)


def _load(directory: Path, tokenizer: Tokenizer) -> Decoder:
    """The checkpoint's model; an embedding may have more rows than its tokenizer has tokens, never fewer."""
    model = load_decoder(directory)
    rows = model.architecture.vocab_size
    if rows < tokenizer.vocab_size:
        raise DataError(f"{directory}: its tokenizer has {tokenizer.vocab_size} tokens, its embedding only {rows} rows")
    return model


def _adopted(model: Decoder, rows: Sequence[Rows], config: RunConfig, tokenizer: Tokenizer) -> Decoder:
    """The model with the run's context length and end-of-document token; its token i has the mean of rows `rows[i]`."""
    changed = model.architecture.adopted(
        vocab_size=len(rows), context_length=config.model.context_length, eos_id=tokenizer.eos_id
    )
    adopted = Decoder(changed)
    theirs = dict(model.named_parameters())
    with torch.no_grad():
        for name, parameter in adopted.named_parameters():
            if name in VOCABULARY:
                _rearrange(parameter, theirs[name], rows)
            else:
                parameter.copy_(theirs[name])
    return adopted


def _rearrange(matrix: torch.Tensor, old: torch.Tensor, rows: Sequence[Rows]) -> None:
    """Give row i of a matrix of the vocabulary the mean of the rows `rows[i]` of the old one."""
    kept = [(row, of[0]) for row, of in enumerate(rows) if len(of) == 1]
    places, sources = (torch.tensor(column) for column in zip(*kept, strict=True))
    matrix[places] = old[sources]
    for row, of in enumerate(rows):
        if len(of) > 1:
            matrix[row] = old[torch.from_numpy(of)].mean(dim=0)
