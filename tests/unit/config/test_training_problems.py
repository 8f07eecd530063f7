"""Settings of training and scoring that cannot be together, which the configuration alone says."""

from dataclasses import replace

import pytest

from paribus.checks.combinations import impossible
from paribus.config.groups.evaluation import EvaluationConfig
from paribus.config.groups.training import TrainingConfig
from support.run_config import run_config

TRAINING = TrainingConfig(global_batch=8, micro_batch=1)


@pytest.mark.parametrize(
    ("given", "refused"),
    [
        ({"shard_processes": 2}, "2, but training.parallel=ddp divides no weights; use training.parallel=fsdp, or 0"),
        ({"shard_processes": 2, "parallel": "fsdp"}, "2 make no groups of training.processes=1 x training.nodes=1; "),
        ({"shard_processes": 3, "parallel": "fsdp", "processes": 4}, "3 make no groups of training.processes=4 x "),
        ({"shard_processes": 2, "parallel": "fsdp", "processes": 4}, None),
        ({"shard_processes": 2, "parallel": "fsdp", "processes": 2, "nodes": 2}, None),
        ({"shard_processes": 2, "parallel": "fsdp", "processes": 0}, None),
        ({"parallel": "fsdp", "processes": 4}, None),
    ],
)
def test_groups_that_processes_do_not_make_up_are_refused(given: dict[str, object], refused: str | None) -> None:
    found = dict(impossible(run_config(training=replace(TRAINING, **given)))).get("training.shard_processes")  # type: ignore[arg-type]
    assert found is None if refused is None else found is not None and found.startswith(refused)


@pytest.mark.parametrize(("device", "refused"), [("cpu", True), ("auto", False), ("cuda", False)])
def test_tf32_is_refused_where_a_cpu_is_to_score(device: str, refused: bool) -> None:
    given = run_config(evaluation=EvaluationConfig(precision="tf32", device=device))
    assert ("evaluation.precision" in dict(impossible(given))) == refused
