"""The checkpoints that are scored, and their models. Imports torch: import this module late."""

import re
from pathlib import Path
from typing import Any

from paribus.config.checkpoint_steps import checkpoint_steps, too_few_checkpoints
from paribus.config.groups.training import TrainingConfig
from paribus.errors import ConfigurationError, DataError
from paribus.modeling.build import load_model
from paribus.modeling.device import resolve_device

STEP = re.compile(r"step_(\d+)")


def last_checkpoints(artifact: Path, training: TrainingConfig, number: int) -> dict[int, Path]:
    """Step -> directory of the checkpoints at the last `number` shares of a training, ascending.

    Raises ConfigurationError where these shares end at fewer steps, so that another run would be scored at others.
    """
    found = {int(match[1]): path for path in artifact.iterdir() if (match := STEP.fullmatch(path.name))}
    if not found:
        raise DataError(f"{artifact} has no checkpoint step_XXXXXXXX")
    steps = max(found)
    if few := too_few_checkpoints(training, steps, number):
        raise ConfigurationError(f"evaluation.last_checkpoints: {few}")
    wanted = checkpoint_steps(training.checkpoints, steps, number)
    if missing := [step for step in wanted if step not in found]:
        raise DataError(f"{artifact} has no checkpoint of steps {missing}; there are those of {sorted(found)}")
    return {step: found[step] for step in wanted}


def load_checkpoint_model(checkpoint: Path, device: str) -> Any:
    """The model in float32 on the device: rounding must not differ between runs that are compared."""
    return load_model(checkpoint).to(resolve_device(device, "evaluation.device")).eval()
