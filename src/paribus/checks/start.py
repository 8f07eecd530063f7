"""Starts that lead nowhere: two checkpoints or none, and first trainings that are no part of the budget."""

from collections.abc import Iterator
from dataclasses import fields

from paribus.config.groups.budget import amount_of, amount_path, unit_of
from paribus.config.groups.model import EncoderDecoderModel
from paribus.config.groups.start import CheckpointStart, ContinuedStart
from paribus.config.schema import RunConfig
from paribus.training.start.first import first_amount


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
    path, unit = amount_path(config.budget), unit_of(config.budget)
    first, whole = first_amount(config), amount_of(config.budget)
    for name in (field.name for field in fields(start) if field.name not in ("kind", unit)):
        if getattr(start, name) is not None:
            yield f"start.{name}", f"given, but budget={config.budget.kind} counts {unit}; give start.{unit}"
    if isinstance(config.model, EncoderDecoderModel):
        yield "start.kind", "continued goes on with a decoder (model.kind llama or gpt_neox), not an encoder-decoder"
    if first is None:
        yield f"start.{unit}", f"not given: how much of {path}={whole} the training has that is gone on from"
    elif first >= whole:
        yield f"start.{unit}", f"{first} is not below {path}={whole}, which is that of both trainings together"
