"""Budgets that do not last as long as the warm-up, or for the checkpoints that are scored, where that is known."""

from collections.abc import Iterator

from paribus.config.groups.budget import EqualFlopsBudget, EqualStepsBudget, EqualTokensBudget
from paribus.config.groups.packing import PairPacking, pads
from paribus.config.groups.training import TrainingConfig
from paribus.config.schema import RunConfig
from paribus.modeling.counts import training_flops
from paribus.modeling.problems import match_problems


def impossible_schedule(config: RunConfig, vocabulary: int | None) -> Iterator[tuple[str, str]]:
    """(path, what is wrong and what would be right), where the number of steps is known.

    A budget in FLOPs needs the number of tokens for that; None where only files say it.
    """
    budget, warmup = config.budget, config.training.warmup_steps
    tokens = config.training.global_batch * config.model.context_length
    step = f"training.global_batch x model.context_length = {tokens} tokens"
    match budget:
        case _ if isinstance(config.packing, PairPacking) and not isinstance(budget, EqualStepsBudget):
            return  # how long pairs are, the documents decide
        case EqualTokensBudget() if not pads(config.packing):
            path, value, of_step = "budget.tokens", budget.tokens, tokens
        case EqualFlopsBudget() if vocabulary is not None and not list(match_problems(config.model, vocabulary)):
            of_step = training_flops(config.model, vocabulary, tokens)
            path, value, step = "budget.flops", budget.flops, f"{step}: {of_step:.3g} FLOPs"
        case EqualStepsBudget():
            path, value, of_step = "budget.steps", budget.steps, 1
        case _:
            return
    steps = -(-value // of_step)
    if value < of_step:
        yield path, f"{value} is less than one step ({step})"
    elif warmup >= steps:
        yield "training.warmup_steps", f"{warmup} leaves none of the budget's {steps} steps ({path}={value})"
    elif config.evaluation.last_checkpoints <= config.training.keep_checkpoints:
        few = too_few_checkpoints(config.training, steps, config.evaluation.last_checkpoints)
        yield from [("evaluation.last_checkpoints", few)] if few else []


def checkpoints_of(training: TrainingConfig, steps: int) -> int:
    """Checkpoints that a training of so many steps keeps: one every `checkpoint_every` steps, and the last step's."""
    return min(training.keep_checkpoints, -(-steps // training.checkpoint_every))


def too_few_checkpoints(training: TrainingConfig, steps: int, wanted: int) -> str | None:
    """What is wrong where fewer checkpoints are kept than are to be scored; None where there are enough."""
    kept = checkpoints_of(training, steps)
    if kept >= wanted:
        return None
    right = max(1, steps // wanted)
    return (
        f"{wanted} are to be scored, and {steps} steps with training.checkpoint_every={training.checkpoint_every} and "
        f"training.keep_checkpoints={training.keep_checkpoints} leave {kept}; lower it to {kept}, or "
        f"training.checkpoint_every to {right} or less"
    )
