"""Runs of the `training` stage that are killed for real, and what they become when run again.

`PYTHONPATH=tests python training_scenarios.py ROOT` trains straight through into ROOT/straight and, for each point of
`POINTS`, trains in a child that kills itself with SIGKILL there and then in one that resumes. Children are forked, so
that the imports, those of building a model among them, are paid for once.
"""

import dataclasses
import os
import signal
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from paribus.config.groups.ordering import BestFitPacking
from paribus.config.schema import RunConfig
from paribus.modeling.models import build_model
from paribus.training import checkpoint, step, train
from paribus.training.start import STEP_NAME
from support.forked import in_fork
from support.training_inputs import (
    EVERY,
    MODEL,
    STEPS,
    TRAINING,
    TRANSLATOR,
    config,
    execute,
    pair_config,
    write_inputs,
    write_pair_inputs,
)

POINTS = (
    "before_the_first_step", "before_any_checkpoint", "in_a_step", "between_checkpoints", "weights_half_saved",
    "before_rename", "after_rename", "after_the_last_step",
)  # fmt: skip
SKIPPING = dataclasses.replace(TRAINING, learning_rate=1e-6, loss_limit=1.0043, skip_bad_steps=STEPS)
"""Hardly learns, so that the loss stays where some steps are above the limit and others below."""


def kill_at(point: str) -> None:
    """Arrange for this process to kill itself at `point` of the run."""
    if point == "before_the_first_step":
        _kill_before_call(step.Stepper, "step", call=1)
    elif point == "in_a_step":
        _kill_before_call(step.Stepper, "_clip", call=2 * EVERY + 2)
    elif point == "before_any_checkpoint":
        _kill_before_call(checkpoint.Checkpoints, "save", call=1)
    elif point == "between_checkpoints":
        _kill_before_call(train.MetricsFile, "append", call=2 * EVERY + 3)
    elif point == "weights_half_saved":
        _kill_before_call(checkpoint, "save_file", call=2)
    elif point == "before_rename":
        _kill_before_call(checkpoint, "publish_directory", call=3)
    elif point == "before_the_next_rename":
        _kill_before_call(checkpoint, "publish_directory", call=1)
    elif point == "after_rename":
        _kill_before_call(checkpoint.Checkpoints, "_drop_old", call=3)
    else:
        _kill_before_call(train, "export", call=1)


def _kill_before_call(owner: object, name: str, *, call: int) -> None:
    original: Callable[..., object] = getattr(owner, name)
    calls = iter(range(1, call + 1))

    def counted(*arguments: object, **options: object) -> object:
        if next(calls) == call:
            os.kill(os.getpid(), signal.SIGKILL)
        return original(*arguments, **options)

    setattr(owner, name, counted)


def trained(root: Path, name: str, inputs: dict[str, Path], run: RunConfig | None = None) -> None:
    """Run to the end, or go on to it."""
    if in_fork(lambda: execute(root, name, inputs, run)) != 0:
        raise RuntimeError(f"{name} did not end well")


def damage_newest(work: Path) -> None:
    """Cut the weights of the newest checkpoint short, as a failing disk would."""
    newest = max(path for path in work.iterdir() if STEP_NAME.fullmatch(path.name))
    weights = newest / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])


def killed_then_resumed(
    root: Path,
    name: str,
    inputs: dict[str, Path],
    points: Sequence[str],
    *,
    damaged: bool = False,
    run: RunConfig | None = None,
    again: RunConfig | None = None,
) -> None:
    """Kill a run at one of `points` after the other, possibly damage its newest checkpoint, and run it again, as
    `again` configures it where that is given.
    """

    def killed(point: str) -> None:
        kill_at(point)
        execute(root, name, inputs, run)

    for point in points:
        if not os.WIFSIGNALED(in_fork(partial(killed, point))):
            raise RuntimeError(f"the run was not killed at {point}")
    if damaged:
        damage_newest(root / name / "work")
    trained(root, name, inputs, again or run)


def main(root: Path) -> None:
    """Every scenario below `root`."""
    for model in (MODEL, TRANSLATOR):
        build_model(model, vocab_size=300, seed=0, eos_id=0)
    inputs = write_inputs(root)
    trained(root, "straight", inputs)
    seldom, often = (config(training=dataclasses.replace(TRAINING, checkpoint_every=every)) for every in (1000, 1))
    trained(root, "seldom", inputs, seldom)
    trained(root, "often", inputs, often)
    killed_then_resumed(root, "often_then_seldom", inputs, ["between_checkpoints"], run=often, again=seldom)
    for point in POINTS:
        killed_then_resumed(root, point, inputs, [point])
    killed_then_resumed(root, "twice", inputs, ["before_rename", "before_the_next_rename"])
    # Checkpoints are written beside the steps: only one that has just got its name is there for certain.
    killed_then_resumed(root, "damaged", inputs, ["after_rename"], damaged=True)
    trained(root, "skipping_straight", inputs, config(training=SKIPPING))
    killed_then_resumed(root, "skipping", inputs, ["between_checkpoints"], run=config(training=SKIPPING))
    pairs = write_pair_inputs(root)
    trained(root, "pairs_straight", pairs, pair_config())
    killed_then_resumed(root, "pairs", pairs, ["between_checkpoints"], run=pair_config())
    padded = config(packing=BestFitPacking(attention="document"))
    trained(root, "padded_straight", inputs, padded)
    killed_then_resumed(root, "padded", inputs, ["between_checkpoints"], run=padded)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
