"""A run's own first training, with a smaller budget, that `start=continued` goes on from.

It is an artefact `training` like any other, shared with every run that trains no longer. What it leaves is resumed:
steps are counted on, as `resumed` has it.
"""

from dataclasses import replace
from typing import Any

from paribus.config.groups.model import CheckpointStart, ContinuedStart, ScratchStart
from paribus.config.groups.training import unit_of
from paribus.config.schema import RunConfig
from paribus.stage import StageContext

FIRST = "first_training"


def has_first(config: RunConfig) -> bool:
    """Whether a run goes on from a training of its own."""
    return isinstance(config.start, ContinuedStart)


def first_config(config: RunConfig) -> RunConfig:
    """The configuration of a run's first training; that of a run without one as it is.

    ValueError where `start` does not say how much of the budget is the first training's.
    """
    if not isinstance(config.start, ContinuedStart):
        return config
    unit, amount = unit_of(config.budget), first_amount(config)
    if amount is None:
        raise ValueError(f"start.{unit} is not given")
    amounts: dict[str, Any] = {unit: amount}
    return replace(config, start=ScratchStart(kind="scratch"), budget=replace(config.budget, **amounts))


def first_amount(config: RunConfig) -> int | None:
    """How much of the budget a run's first training has, in the budget's unit; None where nothing says so."""
    return getattr(config.start, unit_of(config.budget)) if isinstance(config.start, ContinuedStart) else None


def begun(context: StageContext) -> StageContext:
    """The context of a training that resumes the one among its inputs, where its start is its own first training."""
    if not has_first(context.config):
        return context
    start = CheckpointStart(
        kind="checkpoint",
        path=str(context.inputs[FIRST]),
        run=None,
        step=None,
        root=context.config.root,
        vocabulary="same",
        optimizer="resumed",
        longer_context=False,
    )
    return replace(context, config=replace(context.config, start=start))
