"""Probes of the speed of training: measured in a child process, remembered, and refused where they are not possible."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from paribus.config.groups.model import LlamaModel
from paribus.config.groups.plan import PlanConfig
from paribus.errors import ConfigurationError, OutOfMemoryError
from paribus.modeling.counts import flops_per_token
from paribus.modeling.memory import training_memory
from paribus.pipeline.prepared_run import PreparedRun
from paribus.planning.bill import bill
from paribus.planning.plan import make_plan
from paribus.planning.probe import probe_key, probe_path
from support.plans import MODEL, TOKENS, TRAINING, planned_run
from support.training_inputs import TRANSLATOR

VOCABULARY = 257
QUICK = PlanConfig(throughput="probe", probe_seconds=0.3)
HUGE = LlamaModel(width=65_536, layers=80, heads=64, ffn_width=262_144, context_length=32)
MEASURED = {
    "seconds": [2.0, 2.0, 2.0, 2.2, 1.8], "tokens": 256, "device": "abacus", "precision": "fp32", "micro_batch": 4,
    "threads": 1, "layers": [2], "when": "2026-01-02 03:04 UTC",
}  # fmt: skip


def cached(run: PreparedRun) -> Path:
    config = run.job.config
    return probe_path(Path(config.root) / "cache", probe_key(config, VOCABULARY))


def remember(run: PreparedRun, **changes: Any) -> Path:
    path = cached(run)
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"key": probe_key(run.job.config, VOCABULARY), "probe": MEASURED | changes}
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def test_a_shape_is_probed_once_where_nothing_sound_is_remembered(tmp_path: Path) -> None:
    told: list[str] = []
    runs = [planned_run(tmp_path, QUICK, seed) for seed in (0, 1)]
    damaged = remember(runs[0])
    damaged.write_bytes(damaged.read_bytes()[:-20])
    assert make_plan([planned_run(tmp_path, PlanConfig())], told.append).device_hours is None
    assert told == []
    plan = make_plan(runs, told.append)
    assert len(told) == 1, "two runs of one shape are one probe"
    (path,) = (tmp_path / "cache" / "probes").iterdir()
    made = path.read_bytes()
    measured = json.loads(made)["probe"]
    assert (measured["precision"], measured["micro_batch"], measured["threads"]) == ("fp32", 4, 1)
    assert len(measured["seconds"]) >= 3
    assert measured["tokens"] in (4 * 32, 8 * 32)
    assert plan.device_hours is not None

    again = make_plan(runs, told.append)
    assert (len(told), path.read_bytes()) == (1, made)
    assert again.device_hours == plan.device_hours
    assert "remembered" in "\n".join(bill(again))


def test_hours_are_positions_over_tokens_a_second_with_the_spread_of_steps(tmp_path: Path) -> None:
    run = planned_run(tmp_path, PlanConfig())
    remember(run)
    plan = make_plan([run], print)
    assert plan.device_hours is not None
    assert plan.device_hours.value == pytest.approx(TOKENS / 128 / 3600)
    assert plan.device_hours.error == pytest.approx((2.12 - 1.88) / 2 / 2)
    assert plan.runs[0].throughput.flops == pytest.approx(128 * flops_per_token(MODEL, VOCABULARY))
    said = "\n".join(bill(plan))
    assert (
        "128 tokens/s ± 6 % on abacus, fp32, micro-batch 4, 1 thread; probed 2026-01-02 03:04 UTC, remembered" in said
    )


@pytest.mark.parametrize(
    "groups",
    [
        {"model": replace(MODEL, context_length=64)},
        {"model": replace(MODEL, width=32)},
        {"training": replace(TRAINING, micro_batch=2)},
        {"training": replace(TRAINING, precision="bf16")},
        {"training": replace(TRAINING, activation_checkpointing=True)},
    ],
)
def test_another_shape_or_precision_is_another_probe(groups: dict[str, Any], tmp_path: Path) -> None:
    remember(planned_run(tmp_path, PlanConfig()))
    assert make_plan([planned_run(tmp_path, PlanConfig())]).device_hours is not None
    assert make_plan([planned_run(tmp_path, PlanConfig(), **groups)]).device_hours is None


def test_a_seed_a_learning_rate_and_the_seconds_of_a_probe_are_no_other_probe(tmp_path: Path) -> None:
    remember(planned_run(tmp_path, PlanConfig()))
    same = planned_run(tmp_path, PlanConfig(probe_seconds=3.0), 5, training=replace(TRAINING, learning_rate=0.5))
    assert make_plan([same]).device_hours is not None


def test_a_probe_refuses_what_has_no_room_no_formula_and_no_time(tmp_path: Path) -> None:
    from paribus.training.fit.probe import measure

    config = planned_run(tmp_path, QUICK).job.config
    with pytest.raises(OutOfMemoryError, match=r"even with training\.micro_batch=1"):
        measure(replace(config, model=HUGE), VOCABULARY, 1.0)
    with pytest.raises(ConfigurationError, match="no formula for the memory of encoder_decoder"):
        measure(replace(config, model=TRANSLATOR), VOCABULARY, 1.0)
    with pytest.raises(ConfigurationError, match=r"3 steps of one micro-batch would take at least"):
        measure(replace(config, model=replace(MODEL, width=128, layers=8)), VOCABULARY, 1e-6)


SHARED = replace(TRAINING, parallel="fsdp", processes=8, global_batch=32, micro_batch=4)


def test_shared_weights_are_probed_by_fewer_layers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step is made to take a second and a tenth a layer."""
    from paribus.training.fit import probe

    deep = replace(MODEL, layers=64, width=64, heads=2, ffn_width=172)
    config = planned_run(tmp_path, QUICK, training=SHARED, model=deep).job.config
    sharded = probe._setting(config, SimpleNamespace(device=torch.device("cpu")), "fp32")
    needed = training_memory(deep, VOCABULARY, sharded)
    assert needed is not None
    # What a process of the group needs, and an eighth of what one needs that has all.
    monkeypatch.setattr(probe, "available_bytes", lambda *_: int(1.5 * needed.device))
    monkeypatch.setattr(probe, "_time", lambda stepper, _: 1.0 + len(stepper.prepared.model.layers) / 10)
    found = probe.measure(config, VOCABULARY, 20.0)
    few, many = found["layers"]
    assert 1 <= few == many // 2 < many < 64
    assert found["micro_batch"] == 4
    assert found["seconds"] == pytest.approx([7.4] * len(found["seconds"]))

    monkeypatch.setattr(probe, "available_bytes", lambda *_: None)
    assert probe.measure(replace(config, model=MODEL), VOCABULARY, 3.0)["layers"] == [MODEL.layers]
    with pytest.raises(OutOfMemoryError, match=r"even with training\.micro_batch=1"):
        monkeypatch.setattr(probe, "available_bytes", lambda *_: int(1.5 * needed.device))
        probe.measure(replace(config, training=replace(SHARED, parallel="ddp")), VOCABULARY, 3.0)


def test_one_slow_step_of_the_shorter_model_makes_no_step_quicker() -> None:
    from paribus.training.fit.shape import extrapolated

    short, long = [0.4, 0.4, 1.9, 0.4], [0.8, 0.8, 0.9]
    assert extrapolated([short, long], [4, 8], 80) == pytest.approx([8.0, 8.0, 8.1])
    assert extrapolated([long, short], [4, 8], 80) == short, "layers take no time less than none"
