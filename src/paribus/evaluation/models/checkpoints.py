"""The checkpoints that are scored, and their models. Imports torch: import this module late."""

import re
from pathlib import Path
from typing import Any

import torch

from paribus.config.groups.training import TrainingConfig, checkpoint_steps, too_few_checkpoints
from paribus.errors import ConfigurationError, DataError
from paribus.modeling.decoder import Decoder
from paribus.modeling.device import expect_many_shapes, resolve_device, set_products
from paribus.modeling.models import load_model

STEP = re.compile(r"step_(\d+)")


def last_checkpoints(
    artifact: Path, training: TrainingConfig, number: int, asked: str = "evaluation.last_checkpoints"
) -> dict[int, Path]:
    """Step -> directory of the checkpoints at the last `number` shares of a training, ascending.

    Raises ConfigurationError, by the path `asked`, where these shares end at fewer steps, so that another run would be
    scored at others.
    """
    found = {int(match[1]): path for path in artifact.iterdir() if (match := STEP.fullmatch(path.name))}
    if not found:
        raise DataError(f"{artifact} has no checkpoint step_XXXXXXXX")
    steps = max(found)
    if few := too_few_checkpoints(training, steps, number):
        raise ConfigurationError(f"{asked}: {few}")
    wanted = checkpoint_steps(training.checkpoints, steps, number)
    if missing := [step for step in wanted if step not in found]:
        raise DataError(f"{artifact} has no checkpoint of steps {missing}; there are those of {sorted(found)}")
    return {step: found[step] for step in wanted}


def load_checkpoint_model(checkpoint: Path, device: str, precision: str = "fp32") -> Any:
    """The model on the device, its weights in float32, computing in `fp32`, `tf32` or `bf16`.

    Raises ConfigurationError for TF32 on a CPU, which has none: its scores would pass for those of a GPU.
    """
    resolved = resolve_device(device, "evaluation.device")
    set_products(precision, resolved, "evaluation.precision")
    expect_many_shapes()
    model = load_model(checkpoint).to(resolved).eval()
    if isinstance(model, Decoder) and precision == "bf16":
        model.computes_in = torch.bfloat16
    return model
