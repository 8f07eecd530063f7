"""The stages `tasks`, `prompts`, `evaluation` and `token_statistics`."""

import os
from collections.abc import Mapping
from typing import Any

from paribus.config.metrics import main_scores, said
from paribus.config.schema import RunConfig
from paribus.config.units import format_number, format_size
from paribus.evaluation.suites.registry import prompted
from paribus.evaluation.suites.segmentations import segmented
from paribus.stage import JSON, OFFLINE, Device, Outside, Stage, StageContext, always, fields, together
from paribus.store.files import FileDigests


def _evaluation_inputs(config: RunConfig) -> tuple[str, ...]:
    prompts = ("prompts",) if prompted(config.evaluation.tasks) else ()
    return ("corpus", "tasks", *prompts, "training")


def _token_statistics_inputs(config: RunConfig) -> tuple[str, ...]:
    return ("corpus", "tokens", *(("tasks",) if segmented(config.evaluation.tasks) else ()))


def _segmentations(config: RunConfig) -> dict[str, Any]:
    named = segmented(config.evaluation.tasks)
    return {"evaluation": {"tasks": list(named)}} if named else {}


def build_tasks(context: StageContext) -> dict[str, JSON]:
    """Write what is scored; see `paribus.evaluation.tasks.build`."""
    os.environ.update(OFFLINE)
    from paribus.evaluation.tasks.build import build

    return build(context)


def _fingerprint(config: Any, digests: FileDigests) -> dict[str, JSON]:
    from paribus.evaluation.fingerprint import fingerprint

    return fingerprint(config, digests)


def _build_prompts(context: StageContext) -> dict[str, JSON]:
    from paribus.evaluation.prompts.build import build_prompts

    return build_prompts(context)


def build_scores(context: StageContext) -> dict[str, JSON]:
    """Score the last checkpoints; see `paribus.evaluation.scores`."""
    os.environ.update(OFFLINE)
    from paribus.training.distributed import beside

    config = context.config.evaluation
    processes = beside(config.processes, config.device, context.config.training, "evaluation.processes")
    if processes.total > 1:
        from paribus.training.launch import carry_out

        return carry_out(context, processes, "paribus.evaluation.member")
    from paribus.evaluation.scores import score_checkpoints

    return score_checkpoints(context)


def _build_token_statistics(context: StageContext) -> dict[str, JSON]:
    from paribus.evaluation.token_statistics import build

    return build(context)


def _device(config: RunConfig) -> Device:
    asked = config.evaluation.processes
    gpus = config.training.processes if asked is None else asked
    return Device("evaluation.device", config.evaluation.device, gpus, fewer_do=asked is None)


def facts(result: Mapping[str, Any]) -> list[str]:
    """The main scores of a result that has `metrics`."""
    return said(main_scores(result["metrics"]), most=4)


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
    imports=("paribus.evaluation.tasks.build",),
    facts=_facts_of_tasks,
    outside=Outside(lambda config: config.evaluation, _fingerprint),
)  # fmt: skip
PROMPTS = Stage(
    "prompts",
    code_version=1,
    inputs=always("tokens", "tasks"),
    identity=together(fields("evaluation", "shots", "shots_of"), fields("model", "context_length", "context_bytes")),
    build=_build_prompts,
    imports=("paribus.evaluation.prompts.build",),
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
    imports=("paribus.evaluation.scores",),
    device=_device,
    facts=facts,
)  # fmt: skip
TOKEN_STATISTICS = Stage(
    "token_statistics",
    code_version=4,
    inputs=_token_statistics_inputs,
    identity=_segmentations,
    build=_build_token_statistics,
    imports=("paribus.evaluation.token_statistics",),
)
