"""Stages `tasks`, `prompts`, `evaluation`, `token_statistics`, `finetuning_data` and `finetuning`."""

import os
from collections.abc import Mapping
from typing import Any

from paribus.config.groups.evaluation import ScrollsFinetuning
from paribus.config.metrics import main_scores, score_texts
from paribus.config.schema import RunConfig
from paribus.config.units import format_number, format_size
from paribus.evaluation.benchmarks import prompted
from paribus.evaluation.data_files import segmented
from paribus.evaluation.scrolls import build_data, scrolls_fingerprint
from paribus.stage import (
    JSON,
    OFFLINE,
    Device,
    ExternalFiles,
    Stage,
    StageContext,
    always,
    fields,
    late,
    seeds,
    together,
)
from paribus.training.start import finetuning_seeds


def _evaluation_inputs(config: RunConfig) -> tuple[str, ...]:
    prompts = ("prompts",) if prompted(config.evaluation.tasks) else ()
    return ("corpus", "tasks", *prompts, "training")


def _token_statistics_inputs(config: RunConfig) -> tuple[str, ...]:
    return ("corpus", "tokens", *(("tasks",) if segmented(config.evaluation.tasks) else ()))


def _segmentations(config: RunConfig) -> dict[str, Any]:
    tasks = segmented(config.evaluation.tasks)
    return {"evaluation": {"tasks": list(tasks)}} if tasks else {}


def build_tasks(context: StageContext) -> dict[str, JSON]:
    """Write the texts that are scored; see `paribus.evaluation.tasks`."""
    os.environ.update(OFFLINE)
    from paribus.evaluation.tasks import build

    return build(context)


def build_scores(context: StageContext) -> dict[str, JSON]:
    """Score the last checkpoints; see `paribus.evaluation.evaluate`."""
    os.environ.update(OFFLINE)
    from paribus.training.distributed import beside

    config = context.config.evaluation
    processes = beside(config.processes, config.device, context.config.training, "evaluation.processes")
    if processes.total > 1:
        from paribus.training.launch import carry_out

        return carry_out(context, processes, "paribus.evaluation.evaluate")
    from paribus.evaluation.evaluate import score_checkpoints

    return score_checkpoints(context)


def _device(path: str, name: str, processes: int | None, config: RunConfig) -> Device:
    gpus = config.training.processes if processes is None else processes
    return Device(path, name, gpus, fewer_do=processes is None)


def facts(result: Mapping[str, Any]) -> list[str]:
    """The main scores of a result that has `metrics`."""
    return score_texts(main_scores(result["metrics"]), most=4)


def _facts_of_tasks(result: Mapping[str, Any]) -> list[str]:
    items = sum(task["items"] for task in result["tasks"].values() if "items" in task)
    heldout = result["heldout"]
    return [
        *([f"{format_number(items)} items"] if items else []),
        f"{format_number(heldout['documents'])} held-out documents, {format_size(heldout['bytes'])}",
    ]


TASKS = Stage(
    "tasks",
    code_version=7,
    inputs=always("corpus"),
    identity=fields(
        "evaluation", "tasks", "texts", "shots", "shots_of", "limit", "continuation_items", "context_characters",
        "continuation_characters", "heldout_documents", "document_bytes", "concatenated", "fewshot_seed",
    ),
    build=build_tasks,
    imports=("paribus.evaluation.tasks",),
    facts=_facts_of_tasks,
    outside=ExternalFiles(lambda config: config.evaluation, late("paribus.evaluation.preflight:tasks_fingerprint")),
)  # fmt: skip
PROMPTS = Stage(
    "prompts",
    code_version=1,
    inputs=always("tokens", "tasks"),
    identity=together(fields("evaluation", "shots", "shots_of"), fields("model", "context_length", "context_bytes")),
    build=late("paribus.evaluation.prompts:build_prompts"),
    imports=("paribus.evaluation.prompts",),
)
EVALUATION = Stage(
    "evaluation",
    code_version=11,
    inputs=_evaluation_inputs,
    identity=fields(
        "evaluation", "shots", "shots_of", "limit", "last_checkpoints", "average_checkpoints", "translations", "beams",
        "length_penalty",
        "clean_overlap", "fewshot_seed", "precision",
    ),
    build=build_scores,
    imports=("paribus.evaluation.evaluate",),
    device=lambda config: _device("evaluation.device", config.evaluation.device, config.evaluation.processes, config),
    facts=facts,
)  # fmt: skip
TOKEN_STATISTICS = Stage(
    "token_statistics",
    code_version=4,
    inputs=_token_statistics_inputs,
    identity=_segmentations,
    build=late("paribus.evaluation.token_statistics:build"),
    imports=("paribus.evaluation.token_statistics",),
)


def build_finetuning(context: StageContext) -> dict[str, JSON]:
    """Fine-tune and score the last checkpoint; see `paribus.evaluation.tune`."""
    os.environ.update(OFFLINE)
    from paribus.evaluation.tune import finetune_tasks, pending_tasks
    from paribus.training.distributed import Processes, beside
    from paribus.training.launch import carry_out

    config = context.config.finetuning
    assert isinstance(config, ScrollsFinetuning)
    device, training = context.config.training.device, context.config.training
    most = beside(config.processes, device, training, "finetuning.processes")
    processes = min(most.total, len(pending_tasks(context)))
    if processes > 1:
        carry_out(context, Processes(processes, 1), "paribus.evaluation.tune")
    return finetune_tasks(context)


def _finetuning_device(config: RunConfig) -> Device:
    processes = config.finetuning.processes if isinstance(config.finetuning, ScrollsFinetuning) else 1
    return _device("training.device", config.training.device, processes, config)


FINETUNING_DATA = Stage(
    "finetuning_data",
    code_version=1,
    inputs=always(),
    identity=fields("finetuning", "tasks", "answer_characters", "document_characters", "limit"),
    build=build_data,
    imports=("paribus.evaluation.scrolls",),
    outside=ExternalFiles(lambda config: config.finetuning, scrolls_fingerprint),
)
FINETUNING = Stage(
    "finetuning",
    code_version=4,
    inputs=always("finetuning_data", "training"),
    identity=together(fields("finetuning"), fields("evaluation", "precision"), seeds(finetuning_seeds)),
    build=build_finetuning,
    imports=("paribus.evaluation.tune",),
    device=_finetuning_device,
    facts=facts,
)
