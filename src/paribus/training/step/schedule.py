"""The learning rate of a step: linear warm-up, then a decay; a pure function of the step, so resuming needs no state.

A warm-up by share and the cosine follow the budget, so runs of different steps have the same rate at the same share of
their text. A warm-up by steps and the inverse square root do not know where the budget ends.
"""

import math

from paribus.config.groups.training import TrainingConfig


def warmup_steps(training: TrainingConfig, steps: int) -> int:
    """Steps of warm-up: `warmup_steps`, or `warmup_share` of `steps` to the nearest, of two as near the even one.

    A share is never the last step.
    """
    if training.warmup_steps is not None:
        return training.warmup_steps
    return min(round(training.warmup_share * steps), steps - 1)


def learning_rate(step: int, steps: int, training: TrainingConfig) -> float:
    """Learning rate of 0-based `step` out of `steps`, which reaches its peak at the step after the warm-up's last."""
    warmup = warmup_steps(training, steps)
    if training.schedule == "inverse_sqrt":
        return _inverse_square_root(step, warmup, training)
    return _cosine(step, steps, warmup, training)


def _cosine(step: int, steps: int, warmup: int, training: TrainingConfig) -> float:
    """Half a cosine (Loshchilov and Hutter 2017, equation 5, without restarts) from the peak to a share of it.

    Step s of w warm-up steps has (s + 1) / (w + 1) of the peak; the last step has `min_learning_rate_ratio` of it.
    """
    peak, floor = training.learning_rate, training.min_learning_rate_ratio
    if step < warmup:
        return peak * (step + 1) / (warmup + 1)
    done = (step - warmup) / max(1, steps - 1 - warmup)
    return peak * (floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * min(1.0, done))))


def _inverse_square_root(step: int, warmup: int, training: TrainingConfig) -> float:
    """Vaswani et al. 2017, equation 3, with a peak that is given, as in Ott et al. 2018 and their fairseq.

    Step s of w warm-up steps has i + (p - i) s / w, from i = `warmup_learning_rate` to the peak p; later ones have
    p sqrt(w / s). Without warm-up that is p / sqrt(s), and p at step 0.
    """
    peak, initial = training.learning_rate, training.warmup_learning_rate
    if step < warmup:
        return initial + (peak - initial) * step / warmup
    return peak * math.sqrt(max(1, warmup) / max(1, step))
