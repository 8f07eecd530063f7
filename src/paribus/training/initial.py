"""Model that a training begins with: random weights, those of a checkpoint, or the end of a training that it resumes.

A checkpoint's model gets the run's vocabulary. With `start.optimizer=resumed` a run takes over the end of another
training in place of step 0.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from paribus.config.groups.model import CheckpointStart, EncoderDecoderModel
from paribus.config.schema import RunConfig
from paribus.errors import ConfigurationError, DataError
from paribus.modeling.decoder import VOCABULARY, Decoder
from paribus.modeling.models import build_empty, build_model, empty_decoder, load_decoder, load_model
from paribus.store.artifacts import RECORD
from paribus.store.files import read_object_if_any
from paribus.tokenization import Tokenizer
from paribus.tokenization.existing import open_existing
from paribus.training.checkpoint import MOMENTS, Checkpoint
from paribus.training.loop import TrainingRun
from paribus.training.metrics import Spent
from paribus.training.sharded import WeightSource, load_weights
from paribus.training.start import (
    ResumedState,
    check_checkpoints_left,
    check_resumed_data,
    check_resumed_state,
    check_steps_left,
    check_stored_model,
    checkpoint_directory,
    metrics_before,
)
from paribus.training.vocabulary import Rows, names, origins, same_tokens


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


def initial_model(config: RunConfig, tokenizer: Tokenizer) -> Any:
    """The model in float32 on the CPU, as `config.start` says; `tokenizer` is the run's.

    Raises ConfigurationError with everything in which the run and the checkpoint disagree, and DataError for files that
    are missing or broken.
    """
    if not isinstance(config.start, CheckpointStart):
        size, end = tokenizer.vocab_size, tokenizer.eos_id
        return build_model(config.model, size, config.seed_of("weights"), eos_id=end, tokens=names(tokenizer))
    directory = checkpoint_directory(config.start)
    if problems := list(check_stored_model(config.model, directory, longer_context=config.start.longer_context)):
        raise ConfigurationError("; ".join(map(str, problems)))
    stored = open_existing(directory)
    if config.start.vocabulary == "same":
        same_tokens(tokenizer, stored, directory)
        rows = [np.array([row]) for row in range(stored.vocab_size)]
    else:
        rows = origins(tokenizer, stored, directory)
    model = load_decoder(directory)
    # An embedding may have more rows than its tokenizer has tokens, never fewer.
    embedded = model.architecture.vocab_size
    if embedded < stored.vocab_size:
        raise DataError(
            f"{directory}: its tokenizer has {stored.vocab_size} tokens, its embedding only {embedded} rows"
        )
    return _with_vocabulary(model, rows, config, tokenizer)


def _with_vocabulary(model: Decoder, rows: Sequence[Rows], config: RunConfig, tokenizer: Tokenizer) -> Decoder:
    """The model with the run's context length and end-of-document token; its token i has the mean of rows `rows[i]`."""
    length = config.model.context_length
    changed = replace(model.architecture, vocab_size=len(rows), context_length=length, eos_id=tokenizer.eos_id)
    adapted, stored = Decoder(changed), dict(model.named_parameters())
    copied = [(row, sources[0]) for row, sources in enumerate(rows) if len(sources) == 1]
    targets, origins_of_targets = (torch.tensor(column) for column in zip(*copied, strict=True))
    with torch.no_grad():
        for name, parameter in adapted.named_parameters():
            if name not in VOCABULARY:
                parameter.copy_(stored[name])
                continue
            parameter[targets] = stored[name][origins_of_targets]
            for row, sources in enumerate(rows):
                if len(sources) > 1:
                    parameter[row] = stored[name][torch.from_numpy(sources)].mean(dim=0)
    return adapted


def hand_over(config: RunConfig, tokenizer: Tokenizer, state: ResumedState, run: TrainingRun) -> None:
    """Let `run` count the first training's steps as its own: judge both and, in the main process, take its metrics.

    `config` has the batch and the context as they came out. ConfigurationError with everything in which the two
    disagree or that leaves nothing to train; DataError for files that are not what a training writes.
    """
    longer = getattr(config.start, "longer_context", False)
    problems = [
        *check_stored_model(config.model, state.checkpoint, longer_context=longer),
        *check_resumed_state(config),
    ]
    problems += check_steps_left(config, state, run.budget.steps)
    problems += check_checkpoints_left(config, state.step, run.budget.steps)
    if problems:
        raise ConfigurationError("; ".join(map(str, problems)))
    same_tokens(tokenizer, open_existing(state.checkpoint), state.checkpoint)
    for path, problem in check_resumed_data(state, run.checkpoints.fingerprint):
        raise ConfigurationError(f"{path}: {problem}")
    _check_moment_shapes(first_checkpoint(state), state)
    if run.main:
        metrics_before(state, run.metrics.path)
        if run.metrics.complete_steps() < state.step:
            raise DataError(f"{state.metrics}: it has not a line for each of the {state.step} steps before it")


def first_checkpoint(state: ResumedState) -> Checkpoint:
    """The end of the first training; its time is that training's, and none of this one."""
    result = read_object_if_any(state.artefact / RECORD).get("result") or {}
    computed_on = tuple(map(str, result.get("computed_on", ())))
    return Checkpoint(state.checkpoint, state.step, state.fingerprint, Spent(), computed_on, state.directory)


def _check_moment_shapes(first: Checkpoint, state: ResumedState) -> None:
    """ConfigurationError unless each weight has moments of its shape; none has where no step changed a weight."""
    stored, weights = first.optimizer().shapes, first.weights().shapes
    expected = {f"{kind}.{name}": shape for name, shape in weights.items() for kind in MOMENTS}
    wrong = [name for name, shape in expected.items() if stored.get(name) != shape]
    if stored and wrong:
        name = wrong[0]
        raise ConfigurationError(
            f"start.optimizer: resumed, but in {state.directory} {name} is {stored.get(name, 'missing')}, where the "
            f"weight is {expected[name]} ({len(wrong)} of {len(expected)} differ): it belongs to another model"
        )
