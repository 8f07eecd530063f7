"""What a run with `start.optimizer=resumed` begins with, in place of step 0: the end of another training."""

from collections.abc import Iterator

from paribus.config.schema import RunConfig
from paribus.errors import ConfigurationError, DataError
from paribus.store.artifacts import RECORD
from paribus.store.files import read_object_if_any
from paribus.tokenization import Tokenizer
from paribus.tokenization.existing import open_existing
from paribus.training.loop import Run
from paribus.training.start.agreement import disagreements
from paribus.training.start.resumed import (
    ResumedState,
    data_problems,
    metrics_before,
    past_problems,
    state_problems,
    unscored_problems,
)
from paribus.training.start.vocabulary import same_tokens
from paribus.training.state.checkpoint import Checkpoint
from paribus.training.state.snapshot import MOMENTS
from paribus.training.state.spent import Spent


def hand_over(config: RunConfig, tokenizer: Tokenizer, state: ResumedState, run: Run) -> None:
    """Let `run` count the first training's steps as its own: judge both and, in the main process, take its metrics.

    `config` has the batch and the context as they came out. ConfigurationError with everything in which the two
    disagree or that leaves nothing to train; DataError for files that are not what a training writes.
    """
    if found := [f"{path}: {problem}" for path, problem in _problems(config, state, run)]:
        raise ConfigurationError("; ".join(found))
    same_tokens(tokenizer, open_existing(state.checkpoint), state.checkpoint)
    for path, problem in data_problems(state, run.checkpoints.fingerprint):
        raise ConfigurationError(f"{path}: {problem}")
    _agreeing_shapes(first_checkpoint(state), state)
    if run.main:
        metrics_before(state, run.metrics.path)
        if run.metrics.complete_steps() < state.step:
            raise DataError(f"{state.metrics}: it has not a line for each of the {state.step} steps before it")


def first_checkpoint(state: ResumedState) -> Checkpoint:
    """The end of the first training; its time is that training's, and none of this one."""
    result = read_object_if_any(state.artefact / RECORD).get("result") or {}
    computed_on = tuple(map(str, result.get("computed_on", ())))
    return Checkpoint(state.checkpoint, state.step, state.fingerprint, Spent(), computed_on, state.directory)


def _problems(config: RunConfig, state: ResumedState, run: Run) -> Iterator[tuple[str, str]]:
    start = config.start
    yield from disagreements(config.model, state.checkpoint, longer_context=getattr(start, "longer_context", False))
    yield from state_problems(config)
    yield from past_problems(config, state, run.budget.steps)
    yield from unscored_problems(config, state.step, run.budget.steps)


def _agreeing_shapes(first: Checkpoint, state: ResumedState) -> None:
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
