"""The learning rate of a step: linear warm-up, then half a cosine; a pure function, so resuming needs no state."""

import math

from paribus.config.groups.training import TrainingConfig
from paribus.errors import ConfigurationError


def check_warmup(training: TrainingConfig, steps: int) -> None:
    """Raise ConfigurationError if the run would end before its warm-up does."""
    if training.warmup_steps >= steps:
        raise ConfigurationError(
            f"training.warmup_steps is {training.warmup_steps} but the budget is only {steps} steps of "
            f"training.global_batch={training.global_batch} contexts; take fewer warm-up steps, a larger budget or "
            "a smaller global batch"
        )


def learning_rate(step: int, steps: int, training: TrainingConfig) -> float:
    """Learning rate of 0-based `step` out of `steps`.

    Step s of w warm-up steps has (s + 1) / (w + 1) of the peak; the peak is reached at step w; the last step has
    `min_learning_rate_ratio` of it.
    """
    peak, warmup = training.learning_rate, training.warmup_steps
    if step < warmup:
        return peak * (step + 1) / (warmup + 1)
    done = (step - warmup) / max(1, steps - 1 - warmup)
    floor = training.min_learning_rate_ratio
    return peak * (floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * min(1.0, done))))
