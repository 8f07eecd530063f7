"""The stages `finetuning_data` and `finetuning`."""

import os
from typing import Any

from paribus.config.groups.evaluation import ScrollsFinetuning
from paribus.config.schema import RunConfig
from paribus.evaluation.stage import facts
from paribus.stage import JSON, OFFLINE, Device, Outside, Stage, StageContext, always, fields, seeds, together
from paribus.store.files import FileDigests
from paribus.training.start import finetuning_seeds


def build_data(context: StageContext) -> dict[str, JSON]:
    """Write the examples of every task before anything is trained; see `paribus.finetuning.data`."""
    from paribus.finetuning.data import build

    return build(context)


def _fingerprint(config: Any, digests: FileDigests) -> dict[str, JSON]:
    from paribus.finetuning.files import fingerprint

    return fingerprint(config, digests)


def build(context: StageContext) -> dict[str, JSON]:
    """Fine-tune and score the last checkpoint; see `paribus.finetuning.run`."""
    os.environ.update(OFFLINE)
    from paribus.finetuning.run import finetune_tasks, left
    from paribus.training.distributed import Processes, beside
    from paribus.training.launch import carry_out

    config = context.config.finetuning
    assert isinstance(config, ScrollsFinetuning)
    device, training = context.config.training.device, context.config.training
    asked = beside(config.processes, device, training, "finetuning.processes")
    processes = min(asked.total, len(left(context)))
    if processes > 1:
        carry_out(context, Processes(processes, 1), "paribus.finetuning.member")
    return finetune_tasks(context)


def _device(config: RunConfig) -> Device:
    asked = config.finetuning.processes if isinstance(config.finetuning, ScrollsFinetuning) else 1
    gpus = config.training.processes if asked is None else asked
    return Device("training.device", config.training.device, gpus, fewer_do=asked is None)


FINETUNING_DATA = Stage(
    "finetuning_data",
    code_version=1,
    inputs=always(),
    identity=fields("finetuning", "tasks", "answer_characters", "document_characters", "limit"),
    build=build_data,
    imports=("paribus.finetuning.data",),
    outside=Outside(lambda config: config.finetuning, _fingerprint),
)
FINETUNING = Stage(
    "finetuning",
    code_version=4,
    inputs=always("finetuning_data", "training"),
    identity=together(fields("finetuning"), fields("evaluation", "precision"), seeds(finetuning_seeds)),
    build=build,
    imports=("paribus.finetuning.run",),
    device=_device,
    facts=facts,
)
