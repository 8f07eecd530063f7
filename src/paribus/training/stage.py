"""The stage `training`."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from paribus.config.schema import RunConfig
from paribus.config.units import format_number
from paribus.stage import Device, ExternalFiles, Stage, fields, late, seeds, together
from paribus.training.start import FIRST, first_config, has_first, start_fingerprint, training_seeds


def _device(config: RunConfig) -> Device:
    training = config.training
    # Of several nodes the scheduler gives whole ones.
    return Device("training.device", training.device, training.processes if training.nodes == 1 else None)


def _inputs(config: RunConfig) -> tuple[str, ...]:
    read = ("tokens", "order", "contexts")
    return (*read, FIRST) if has_first(config) else read


def _facts(result: Mapping[str, Any]) -> list[str]:
    read = f"{format_number(result['tokens'])} tokens in {format_number(result['steps'])} steps"
    return [read, f"final loss {result['final_loss']:.4g}"]


TRAINING = Stage(
    "training",
    code_version=9,
    inputs=_inputs,
    identity=together(*map(fields, ("model", "start", "budget", "training", "packing")), seeds(training_seeds)),
    build=late("paribus.training.train:build"),
    imports=("paribus.training.train", "paribus.tokenization.export"),
    outside=ExternalFiles(lambda config: config.start, start_fingerprint),
    device=_device,
    facts=_facts,
)
FIRST_TRAINING = replace(TRAINING, name=FIRST, stored_as=TRAINING.name, config=first_config)
"""The shorter training that `start=continued` goes on from: kept, and so shared, as the training of any run."""
