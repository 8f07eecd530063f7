"""Fields that nothing reads beside the other choices of a run, such as how a cosine ends where the schedule is none.

The keys of artefacts take them for their defaults, so that configurations which differ in them alone are one run: a
sweep over one is then refused, as one over any other field that changes nothing.
"""

import dataclasses
from collections.abc import Iterator
from typing import Any

from paribus.config.groups.model import EncoderDecoderModel
from paribus.config.schema import RunConfig


def without_idle(config: RunConfig) -> RunConfig:
    """The configuration with the defaults of its idle fields."""
    return dataclasses.replace(
        config, **{group: _with_defaults(getattr(config, group), names) for group, names in _idle(config)}
    )


def _idle(config: RunConfig) -> Iterator[tuple[str, tuple[str, ...]]]:
    """(group, idle fields of it); which they are must follow from identity fields alone."""
    training = config.training
    cosine = ("min_learning_rate_ratio",) if training.schedule != "cosine" else ()
    share = ("warmup_share",) if training.warmup_steps is not None else ()
    yield "training", (*cosine, *share)
    if not isinstance(config.model, EncoderDecoderModel):
        yield "evaluation", ("translations", "beams", "length_penalty")


def _with_defaults(group: Any, names: tuple[str, ...]) -> Any:
    defaults = {field.name: field.default for field in dataclasses.fields(group)}
    return dataclasses.replace(group, **{name: defaults[name] for name in names}) if names else group
