"""The model that a training, also one that goes on, begins with, and where its weights are."""

from typing import Any

import torch

from paribus.config.groups.model import CheckpointStart, EncoderDecoderModel
from paribus.config.schema import RunConfig
from paribus.modeling.models import build_empty, empty_decoder, load_model
from paribus.tokenization import Tokenizer
from paribus.training.start.initial import initial_model
from paribus.training.start.vocabulary import names
from paribus.training.state.checkpoint import Checkpoint
from paribus.training.state.shards import WeightSource, load_weights


def starting_model(
    config: RunConfig, tokenizer: Tokenizer, resumed: Checkpoint | None, *, shared: bool
) -> tuple[Any, WeightSource | None]:
    """The model of the checkpoint that a training goes on from, else of `config.start`, in float32 on the CPU.

    A decoder that processes share is on `meta` and has its weights beside it, of which each takes its rows. Only where
    such a training begins from a checkpoint of another one, every process holds the whole for a while.
    """
    if isinstance(config.model, EncoderDecoderModel):
        return (load_model(resumed.path) if resumed else initial_model(config, tokenizer)), None
    if resumed and shared:
        return empty_decoder(resumed.architecture), resumed.weights()
    if resumed and resumed.sharded:
        model: Any = empty_decoder(resumed.architecture).to_empty(device=torch.device("cpu"))
        load_weights(model, resumed.weights())
        return model, None
    if resumed:
        return load_model(resumed.path), None
    if isinstance(config.start, CheckpointStart) or not shared:
        return initial_model(config, tokenizer), None
    eos, seed = tokenizer.eos_id, config.seed_of("weights")
    return build_empty(config.model, tokenizer.vocab_size, seed, eos_id=eos, tokens=names(tokenizer))
