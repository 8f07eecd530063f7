"""Hours from trainings of the same shape that this machine has made."""

import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from paribus.config.groups.packing import ConcatenatePacking
from paribus.config.groups.plan import PlanConfig
from paribus.modeling.counts import parameter_count
from paribus.pipeline.prepared_run import PreparedRun
from paribus.planning.bill import bill
from paribus.planning.plan import make_plan
from support.plans import MODEL, TRAINING, planned_run, store_record

VOCABULARY = 257
"""Of bytes, which the runs have."""
FLOPS = 3.6e9


def trained(run: PreparedRun, key: str, device_hours: float, *, host: str | None = None, **changes: Any) -> None:
    """A training as `run` asks for it, of `FLOPS`, that took so long."""
    result = {
        "tokens": 1, "text_bytes": 1, "steps": 100, "epochs": 0.5, "flops": FLOPS, "device": "cpu",
        "parameters": parameter_count(MODEL, VOCABULARY), "context_length": MODEL.context_length,
        "device_hours": device_hours,
        "global_batch": TRAINING.global_batch, "micro_batch": TRAINING.micro_batch, "devices": 1,
    } | changes  # fmt: skip
    provenance = {"host": host or socket.gethostname(), "gpu": []}
    store_record(run, "training", result, key=key * 64, provenance=provenance)


def planned(root: Path, **groups: Any) -> PreparedRun:
    return planned_run(root, PlanConfig(), **groups)


def hours_of(run: PreparedRun) -> float | None:
    found = make_plan([run]).training_hours
    return None if found is None else found.value


def test_hours_are_those_of_the_training_in_the_middle(tmp_path: Path) -> None:
    run = planned(tmp_path)
    assert hours_of(run) is None
    for key, device_hours in zip("abc", (0.5, 1.0, 4.0), strict=True):
        trained(run, key, device_hours)
    plan = make_plan([run])
    assert hours_of(run) == pytest.approx(plan.runs[0].length.flops / FLOPS)
    assert "as the 3 trainings of that shape here" in "\n".join(bill(plan))


def test_how_far_trainings_are_apart_is_told_of_three(tmp_path: Path) -> None:
    run = planned(tmp_path)
    trained(run, "a", 1.0)
    found = make_plan([run]).training_hours
    assert found is not None and found.error is None
    trained(run, "b", 1.0)
    trained(run, "c", 2.0)
    found = make_plan([run]).training_hours
    assert found is not None and found.error is not None
    assert found.error == pytest.approx((1.0 - 0.6) / 2)  # 10th and 90th of 0.5, 1 and 1 times the speed


@pytest.mark.parametrize(
    "changes",
    [
        {"host": "another"},
        {"parameters": 3},
        {"context_length": 16},
        {"device": "cuda"},
        {"global_batch": 4},
        {"micro_batch": 8},
        {"devices": 2},
        {"steps": 10},
        {"device_hours": 0.001},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_other_trainings_say_nothing(tmp_path: Path, changes: dict[str, Any]) -> None:
    run = planned(tmp_path)
    trained(run, "a", **{"device_hours": 1.0} | changes)
    assert hours_of(run) is None


@pytest.mark.parametrize(
    "groups",
    [
        {"model": replace(MODEL, layers=3)},
        {"training": replace(TRAINING, precision="bf16")},
        {"training": replace(TRAINING, deterministic=True)},
        {"packing": ConcatenatePacking(attention="document")},
    ],
    ids=["model", "precision", "deterministic", "attention"],
)
def test_a_training_of_another_kind_says_nothing(tmp_path: Path, groups: dict[str, Any]) -> None:
    trained(planned(tmp_path, **groups), "a", 1.0, parameters=parameter_count(MODEL, VOCABULARY))
    assert hours_of(planned(tmp_path)) is None


@pytest.mark.parametrize("missing", ["flops", "device", "parameters"])
def test_a_record_that_lacks_something_is_left_to_doctor(tmp_path: Path, missing: str) -> None:
    run = planned(tmp_path)
    trained(run, "a", 1.0, **{missing: None})
    assert hours_of(run) is None


def test_a_limit_is_judged_by_a_probe(tmp_path: Path) -> None:
    run = planned(tmp_path)
    trained(run, "a", 1.0)
    limited = planned_run(tmp_path, PlanConfig(max_device_hours=100.0, probe_seconds=0.3))
    assert "probed now" in "\n".join(bill(make_plan([limited])))
