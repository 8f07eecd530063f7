"""Budgets that do not last as long as the warm-up, or for the checkpoints that are scored, where that is known."""

from collections.abc import Iterator
from dataclasses import dataclass

from paribus.config.groups.budget import EqualFlopsBudget, EqualStepsBudget, EqualTokensBudget
from paribus.config.groups.packing import PairPacking, pads
from paribus.config.groups.training import TrainingConfig
from paribus.config.schema import RunConfig
from paribus.modeling.counts import training_flops
from paribus.modeling.problems import match_problems


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
    """(path, what is wrong and what would be right) of a budget below one step, or that the warm-up uses up.

    A budget in FLOPs needs the number of tokens for that; None where only files say it.
    """
    schedule, warmup = _schedule(config, vocabulary), config.training.warmup_steps
    if schedule is None:
        return
    if schedule.value < schedule.of_step:
        yield schedule.path, f"{schedule.value} is less than one step ({schedule.step})"
    elif warmup >= schedule.steps:
        told = f"{schedule.steps} steps ({schedule.path}={schedule.value})"
        yield "training.warmup_steps", f"{warmup} leaves none of the budget's {told}"


def unscorable(config: RunConfig, vocabulary: int | None) -> Iterator[tuple[str, str]]:
    """(path, what is wrong) of fewer checkpoints than are to be scored, as far as the steps are known."""
    schedule = _schedule(config, vocabulary)
    few = schedule and too_few_checkpoints(config.training, schedule.steps, config.evaluation.last_checkpoints)
    if few:
        yield "evaluation.last_checkpoints", few


def _schedule(config: RunConfig, vocabulary: int | None) -> _Schedule | None:
    """None where documents decide how many steps there are, or a vocabulary that is not known."""
    budget, tokens = config.budget, config.training.global_batch * config.model.context_length
    step = f"training.global_batch x model.context_length = {tokens} tokens"
    match budget:
        case EqualStepsBudget():
            return _Schedule("budget.steps", budget.steps, 1, step)
        case _ if isinstance(config.packing, PairPacking):
            return None
        case EqualTokensBudget() if not pads(config.packing):
            return _Schedule("budget.tokens", budget.tokens, tokens, step)
        case EqualFlopsBudget() if vocabulary is not None and not list(match_problems(config.model, vocabulary)):
            flops = training_flops(config.model, vocabulary, tokens)
            return _Schedule("budget.flops", budget.flops, flops, f"{step}: {flops:.3g} FLOPs")
        case _:
            return None


def too_few_checkpoints(training: TrainingConfig, steps: int, wanted: int) -> str | None:
    """What is wrong where fewer checkpoints are kept than are to be scored; None where there are enough.

    One is written every `checkpoint_every` steps, and after the last.
    """
    kept = min(training.keep_checkpoints, -(-steps // training.checkpoint_every))
    if kept >= wanted:
        return None
    return (
        f"{wanted} are to be scored, and {steps} steps with training.checkpoint_every={training.checkpoint_every} and "
        f"training.keep_checkpoints={training.keep_checkpoints} leave {kept}; lower it to {kept}, or "
        f"training.checkpoint_every to {max(1, steps // wanted)} or less"
    )
