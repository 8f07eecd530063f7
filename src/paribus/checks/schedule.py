"""Budgets below one step or the warm-up, or with fewer steps than the checkpoints that are scored need."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from paribus.config.checkpoint_steps import too_few_checkpoints
from paribus.config.groups.budget import EqualFlopsBudget, EqualStepsBudget, EqualTokensBudget, amount_of
from paribus.config.groups.packing import PairPacking, pads
from paribus.config.schema import RunConfig
from paribus.modeling.parameters import match_problems, training_flops
from paribus.training.start.first import first_amount, first_config
from paribus.training.start.resumed import (
    past_problems,
    resumed_state,
    resuming,
    steps_before,
    unscored_problems,
)


@dataclass(frozen=True)
class _Schedule:
    """A budget whose steps are known, in its own unit."""

    path: str
    value: int
    of_step: int
    step: str
    """What a step takes, in words."""

    @property
    def steps(self) -> int:
        return -(-self.value // self.of_step)


def impossible_schedule(config: RunConfig, vocabulary: int | None) -> Iterator[tuple[str, str]]:
    """(path, what is wrong and what would be right) of a budget below one step.

    A budget in FLOPs needs the number of tokens for that; None where only files say it.
    """
    yield from _too_short(config, vocabulary)
    yield from _past(config, vocabulary)
    if first := _first(config):
        yield from _first_problems(config, first, vocabulary)


def _too_short(config: RunConfig, vocabulary: int | None) -> Iterator[tuple[str, str]]:
    schedule = _schedule(config, vocabulary)
    if schedule is not None and schedule.value < schedule.of_step:
        yield schedule.path, f"{schedule.value} is less than one step ({schedule.step})"
    if schedule is not None and (unreached := config.training.unreached_warmup(schedule.steps, schedule.path)):
        yield "training.warmup_steps", unreached


def _past(config: RunConfig, vocabulary: int | None) -> Iterator[tuple[str, str]]:
    """A budget that ends where the training that is gone on from ended, or before."""
    schedule, start = _schedule(config, vocabulary), resuming(config)
    if schedule is not None and start is not None and 0 < schedule.steps <= steps_before(config):
        yield from past_problems(config, resumed_state(start), schedule.steps)


def unscorable(config: RunConfig, vocabulary: int | None) -> Iterator[tuple[str, str]]:
    """(path, what is wrong) of fewer checkpoints than are to be scored, as far as the steps are known."""
    schedule = _schedule(config, vocabulary)
    few = schedule and too_few_checkpoints(config.training, schedule.steps, config.evaluation.checkpoints_read)
    if few:
        yield config.evaluation.checkpoints_path, few
    elif first := _first(config):
        yield from _unscored(config, first, vocabulary)
    elif schedule and (before := steps_before(config)):
        yield from unscored_problems(config, before, schedule.steps)


def _first(config: RunConfig) -> RunConfig | None:
    """The configuration of a run's own first training; None where it has none, or none that is less than the whole."""
    amount = first_amount(config)
    return first_config(config) if amount is not None and amount < amount_of(config.budget) else None


def _first_problems(config: RunConfig, first: RunConfig, vocabulary: int | None) -> Iterator[tuple[str, str]]:
    for path, message in _too_short(first, vocabulary):
        yield path.replace("budget.", "start."), f"of the training that is gone on from: {message}"
    part, whole = _schedule(first, vocabulary), _schedule(config, vocabulary)
    if part is not None and whole is not None and part.steps == whole.steps:
        yield part.path.replace("budget.", "start."), f"{part.value} takes all {whole.steps} steps of {whole.path}"


def _unscored(config: RunConfig, first: RunConfig, vocabulary: int | None) -> Iterator[tuple[str, str]]:
    """Checkpoints to be scored that would stand in a run's own first training."""
    part, whole = _schedule(first, vocabulary), _schedule(config, vocabulary)
    if part is not None and whole is not None:
        yield from unscored_problems(config, part.steps, whole.steps)
    else:
        # Of steps that are not known yet, those of this share fall where they do.
        share = Fraction(amount_of(first.budget), amount_of(config.budget))
        yield from unscored_problems(config, share.numerator, share.denominator)


def _schedule(config: RunConfig, vocabulary: int | None) -> _Schedule | None:
    """None where documents decide how many steps there are, also by a batch or context in bytes, or a vocabulary that
    is not known.
    """
    budget, tokens = config.budget, config.training.global_batch * config.model.context_length
    step = f"training.global_batch x model.context_length = {tokens} tokens"
    match budget:
        case EqualStepsBudget():
            return _Schedule("budget.steps", budget.steps, 1, step)
        case _ if isinstance(config.packing, PairPacking) or not tokens:
            return None
        case EqualTokensBudget() if not pads(config.packing):
            return _Schedule("budget.tokens", budget.tokens, tokens, step)
        case EqualFlopsBudget() if vocabulary is not None and not list(match_problems(config.model, vocabulary)):
            flops = training_flops(config.model, vocabulary, tokens)
            return _Schedule("budget.flops", budget.flops, flops, f"{step}: {flops:.3g} FLOPs")
        case _:
            return None
