"""Runs to plan, made without Hydra, and artefacts of which only the record is looked at."""

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from paribus.config.compose import Job
from paribus.config.groups.execution import PlanConfig
from paribus.config.groups.model import LlamaModel
from paribus.config.groups.training import EqualTokensBudget, TrainingConfig
from paribus.pipeline import run as running
from paribus.pipeline.graph import build_graph
from paribus.pipeline.prepared import PreparedRun
from paribus.pipeline.root import OutputRoot
from paribus.planning.plan import Plan
from paribus.planning.show import show_plan
from paribus.store.artifacts import write_record
from support.run_config import run_config

MODEL = LlamaModel(width=16, layers=2, heads=2, ffn_width=24, context_length=32)
TRAINING = TrainingConfig(global_batch=8, micro_batch=4, device="cpu")
TOKENS = 100 * 8 * 32
STATED = PlanConfig(device="h800", utilisation=0.4)


def planned_run(root: Path, plan: PlanConfig = STATED, seed: int = 0, **groups: Any) -> PreparedRun:
    """A run of 100 steps of a model of a few thousand parameters, unless `groups` say otherwise."""
    defaults = {"model": MODEL, "training": TRAINING, "budget": EqualTokensBudget(tokens=TOKENS)}
    config = run_config(plan=plan, seed=seed, root=str(root), **(defaults | groups))
    config = replace(config, engine=replace(config.engine, threads=1))
    nodes = build_graph(config, OutputRoot.of(config).cache, tolerate_missing=True)
    return PreparedRun(Job((f"seed={seed}",), config), nodes)


def store_record(run: PreparedRun, stage: str, result: dict[str, Any]) -> None:
    """An artefact of a run's stage with its record and no other file."""
    node = run.nodes[stage]
    directory = OutputRoot.of(run.job.config).store.path(stage, node.key)
    directory.mkdir(parents=True)
    result = {"heldout": {"documents": 1_000, "bytes": 1_000_000}} | result if stage == "corpus" else result
    inputs = {name: other.key for name, other in node.inputs.items()}
    made = {"stage": stage, "key": node.key, "files": {}, "seconds": 1.0}
    write_record(directory, made | {"identity": node.identity["identity"], "inputs": inputs, "result": result})


def shown(plan: Plan, width: int = 200) -> str:
    """Text of a plan on a terminal of so many columns."""
    file = io.StringIO()
    show_plan(plan, Console(width=width, file=file))
    return file.getvalue()


def run_stages_here(monkeypatch: pytest.MonkeyPatch, work: Callable[[Any], object] = lambda job: None) -> list[str]:
    """Let each stage write one file and call `work` with its job, in no child; the names of the stages that ran."""
    made: list[str] = []

    def execute(job: dict[str, Any], *others: Any, **options: Any) -> dict[str, Any]:
        made.append(job["stage"])
        (Path(job["output"]) / "data").write_text("content", encoding="utf-8")
        work(job)
        return {"documents": 1}

    monkeypatch.setattr(running, "execute", execute)
    return made
