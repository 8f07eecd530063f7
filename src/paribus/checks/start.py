"""Starts that lead nowhere: two checkpoints or none, and first trainings that are no part of the budget."""

from collections.abc import Iterator
from dataclasses import fields
from fractions import Fraction

from paribus.checks.schedule import impossible_schedule, planned_steps
from paribus.config.groups.budget import amount_path
from paribus.config.groups.model import EncoderDecoderModel
from paribus.config.groups.start import CheckpointStart, ContinuedStart
from paribus.config.schema import RunConfig
from paribus.training.start.first import first_config
from paribus.training.start.resumed import unscored_problems


def impossible_start(config: RunConfig) -> Iterator[tuple[str, str]]:
    """(path, what is wrong and what would be right) of a start that leads nowhere."""
    match config.start:
        case CheckpointStart():
            yield from _checkpoint(config.start)
        case ContinuedStart():
            yield from _continued(config, config.start)


def _checkpoint(start: CheckpointStart) -> Iterator[tuple[str, str]]:
    if (start.path is None) == (start.run is None):
        given = "neither is given" if start.path is None else f"start.run={start.run} is given too"
        yield "start.path", f"give start.path (a directory) or start.run (the id of a run), one of the two: {given}"
    if start.optimizer == "resumed" and start.vocabulary == "added":
        message = "added, but start.optimizer=resumed goes on with moments, and added tokens have none"
        yield "start.vocabulary", f"{message}; take the same vocabulary, or start.optimizer=fresh"


def _continued(config: RunConfig, start: ContinuedStart) -> Iterator[tuple[str, str]]:
    path = amount_path(config.budget)
    unit = path.partition(".")[2]
    first, whole = getattr(start, unit), getattr(config.budget, unit)
    for name in (field.name for field in fields(start) if field.name not in ("kind", unit)):
        if getattr(start, name) is not None:
            yield f"start.{name}", f"given, but budget={config.budget.kind} counts {unit}; give start.{unit}"
    if isinstance(config.model, EncoderDecoderModel):
        yield "start.kind", "continued goes on with a decoder (model.kind llama or gpt_neox), not an encoder-decoder"
    if first is None:
        yield f"start.{unit}", f"not given: how much of {path}={whole} the training has that is gone on from"
    elif first >= whole:
        yield f"start.{unit}", f"{first} is not below {path}={whole}, which is that of both trainings together"
    else:
        yield from _unscored(config, Fraction(first, whole))
        for problem, message in impossible_schedule(first_config(config), None):
            yield problem.replace("budget.", "start."), f"of the training that is gone on from: {message}"


def _unscored(config: RunConfig, share: Fraction) -> Iterator[tuple[str, str]]:
    """Checkpoints to be scored that would stand in the first training, which has a `share` of the budget."""
    steps, first = planned_steps(config, None), planned_steps(first_config(config), None)
    if steps is None or first is None:
        # Shares of so many steps fall where those of the budget do.
        first, steps = share.numerator, share.denominator
    yield from unscored_problems(config, first, steps)
