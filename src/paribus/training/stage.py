"""The stage `training`."""

from collections.abc import Mapping
from typing import Any

from paribus.config.schema import RunConfig
from paribus.config.units import format_number
from paribus.stage.context import JSON, StageContext
from paribus.stage.spec import Device, Outside, Stage, always, fields, seeds, together
from paribus.store.file_digests import FileDigests
from paribus.training.seeds import training_seeds


def _build(context: StageContext) -> dict[str, JSON]:
    from paribus.training.build import build

    return build(context)


def _fingerprint(config: Any, digests: FileDigests) -> dict[str, JSON]:
    from paribus.training.start.files import fingerprint

    return fingerprint(config, digests)


def _device(config: RunConfig) -> Device:
    training = config.training
    # Of several nodes the scheduler gives whole ones.
    return Device("training.device", training.device, training.processes if training.nodes == 1 else None)


def _facts(result: Mapping[str, Any]) -> list[str]:
    read = f"{format_number(result['tokens'])} tokens in {format_number(result['steps'])} steps"
    return [read, f"final loss {result['final_loss']:.4g}"]


TRAINING = Stage(
    "training",
    code_version=9,
    inputs=always("tokens", "order", "contexts"),
    identity=together(*map(fields, ("model", "start", "budget", "training", "packing")), seeds(training_seeds)),
    build=_build,
    imports=("paribus.training.build", "paribus.tokenization.interchange.huggingface"),
    outside=Outside(lambda config: config.start, _fingerprint),
    device=_device,
    facts=_facts,
)
