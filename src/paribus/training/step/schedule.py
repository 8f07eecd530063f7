"""The learning rate of a step: linear warm-up, then half a cosine; a pure function, so resuming needs no state.

Both are shares of the budget, so runs of different steps have the same rate at the same share of their text.
"""

import math

from paribus.config.groups.training import TrainingConfig


def warmup_steps(training: TrainingConfig, steps: int) -> int:
    """Steps of warm-up: `warmup_share` of `steps` to the nearest, of two as near the even one; never the last step."""
    return min(round(training.warmup_share * steps), steps - 1)


def learning_rate(step: int, steps: int, training: TrainingConfig) -> float:
    """Learning rate of 0-based `step` out of `steps`.

    Step s of w warm-up steps has (s + 1) / (w + 1) of the peak; the peak is reached at step w; the last step has
    `min_learning_rate_ratio` of it.
    """
    peak, warmup = training.learning_rate, warmup_steps(training, steps)
    if step < warmup:
        return peak * (step + 1) / (warmup + 1)
    done = (step - warmup) / max(1, steps - 1 - warmup)
    floor = training.min_learning_rate_ratio
    return peak * (floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * min(1.0, done))))
