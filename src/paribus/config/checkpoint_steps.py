"""Where checkpoints stand: after equal shares of a training's steps, so that arms of different steps agree in them."""

from paribus.config.groups.training import TrainingConfig


def checkpoint_steps(checkpoints: int, steps: int, last: int) -> tuple[int, ...]:
    """Steps after which the `last` of `checkpoints` equal shares of `steps` end, ascending.

    Share i of n ends after i · steps / n steps, rounded up. Shares that end at one step are there once.
    """
    shares = range(max(0, checkpoints - last) + 1, checkpoints + 1)
    return tuple(dict.fromkeys(-(-share * steps // checkpoints) for share in shares))


def kept_steps(training: TrainingConfig, steps: int) -> tuple[int, ...]:
    """Steps after which the checkpoints stand that a training of `steps` keeps, ascending."""
    return checkpoint_steps(training.checkpoints, steps, training.keep_checkpoints)


def too_few_checkpoints(training: TrainingConfig, steps: int, wanted: int) -> str | None:
    """What is wrong where the last `wanted` shares of `steps` do not end at as many steps; None where they do."""
    found = len(checkpoint_steps(training.checkpoints, steps, wanted))
    if found == wanted:
        return None
    both = f"lower it to {steps}, and training.checkpoints to {steps} or less"
    fewer = both if steps < wanted else f"lower training.checkpoints to {steps} or less"
    return (
        f"{wanted} are to be scored or averaged, and the last {wanted} shares of "
        f"training.checkpoints={training.checkpoints} end at {found} of the budget's {steps} steps; "
        f"take a larger budget, or {fewer}"
    )
