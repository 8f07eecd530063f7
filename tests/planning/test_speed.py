"""Device-hours of a plan: what they are reckoned from, probes of the speed of training, and the limit on them."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from paribus.checks import check_plan
from paribus.cli import main
from paribus.config.groups.execution import PlanConfig
from paribus.config.groups.model import CheckpointStart, LlamaModel
from paribus.errors import ConfigurationError
from paribus.modeling.parameters import flops_per_token
from paribus.pipeline.prepared import PreparedRun
from paribus.planning.plan import Plan, make_plan
from paribus.planning.show import bill, check_limit, refuse_over_limit
from paribus.planning.speed import probe_key, probe_path
from support.plans import MODEL, STATED, TOKENS, planned_run, store_record

VOCABULARY = 257
"""Bytes and the end-of-document token."""


def step_flops(tokens: int, model: LlamaModel = MODEL) -> int:
    """6 N + 12 · layers · width · context a token; N: all parameters but the input embedding."""
    width, ffn = model.width, model.ffn_width
    layer = 4 * width**2 + 3 * width * ffn + 2 * width
    others = model.layers * layer + width + VOCABULARY * width
    return tokens * (6 * others + 12 * model.layers * width * model.context_length)


def hours_of(plan: Plan) -> float:
    assert plan.device_hours is not None
    return plan.device_hours


def test_the_bill_of_a_sweep_is_what_a_hand_reckons(tmp_path: Path) -> None:
    config = replace(STATED, devices=4)
    plan = make_plan([planned_run(tmp_path, config, seed) for seed in (0, 1)])
    each = step_flops(TOKENS) / (0.4 * 989e12) / 3600
    assert plan.flops == 2 * step_flops(TOKENS)
    assert hours_of(plan) == pytest.approx(2 * each)
    text = "\n".join(bill(plan))
    assert " hours on 4 devices that are never idle" in text
    assert "40 % (plan.utilisation) of the 989 TFLOP/s of h800" in text
    unnamed = make_plan([planned_run(tmp_path, PlanConfig(peak_tflops=2.0, utilisation=0.5))])
    assert hours_of(unnamed) == pytest.approx(step_flops(TOKENS) / 1e12 / 3600)


def test_runs_that_share_a_training_pay_for_it_once_and_a_trained_one_for_nothing(tmp_path: Path) -> None:
    one, other = planned_run(tmp_path), planned_run(tmp_path, seed=1)
    assert hours_of(make_plan([one, one, other])) == pytest.approx(2 * hours_of(make_plan([one])))
    result = dict.fromkeys(("tokens", "text_bytes", "steps", "epochs", "flops", "parameters"), 1)
    store_record(one, "training", result | {"device_hours": 3.0})
    plan = make_plan([one, other])
    assert [run.hours for run in plan.runs if run.trained] == [3.0]
    assert [run.label for run in plan.trainings] == ["seed=1"]


def test_steps_of_the_training_that_is_resumed_are_not_paid_again(tmp_path: Path) -> None:
    first = tmp_path / "first"
    for name in ("state", "step_00000025"):
        (first / name).mkdir(parents=True)
    (first / "state" / "state.json").write_text(json.dumps({"step": 25, "fingerprint": {}}))
    for name in ("state/optimizer.safetensors", "metrics.jsonl"):
        (first / name).touch()
    start = CheckpointStart(path=str(first), optimizer="resumed")
    plan = make_plan([planned_run(tmp_path, start=start)])
    assert plan.flops == 0.75 * step_flops(TOKENS)
    assert hours_of(plan) == pytest.approx(0.75 * hours_of(make_plan([planned_run(tmp_path)])))
    fresh = make_plan([planned_run(tmp_path, start=replace(start, optimizer="fresh"))])
    assert fresh.flops == step_flops(TOKENS)


def test_a_sweep_over_its_limit_is_refused_by_figure_and_limit(tmp_path: Path) -> None:
    hours = hours_of(make_plan([planned_run(tmp_path)]))
    fits = planned_run(tmp_path, replace(STATED, max_device_hours=hours * 1.01))
    check_limit(make_plan([fits]))
    refuse_over_limit([fits], print)
    small = replace(STATED, max_device_hours=hours / 2)
    with pytest.raises(ConfigurationError) as error:
        check_limit(make_plan([planned_run(tmp_path, small)]))
    assert f"plan.max_device_hours: {hours / 2:g}, but 1 training" in str(error.value)
    assert f"takes {hours:.2g} device-hours" in str(error.value)


@pytest.mark.parametrize("verb", ["plan", "run"])
def test_a_command_over_its_limit_makes_nothing(verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = ["scale=tiny", "corpus=pydocs_small", "tracking=none", f"root={tmp_path}", "plan.device=h800"]
    assert main([verb, "-m", *small, "seed=0,1", "plan.max_device_hours=1e-9"]) == 2
    printed = capsys.readouterr()
    assert "plan.max_device_hours: 1e-09, but 2 trainings" in printed.err
    assert ("still to train: 2 trainings" in printed.out) == (verb == "plan")
    assert not (tmp_path / "artifacts").exists()


def test_a_speed_that_nothing_gives_is_refused() -> None:
    for plan, path, message in (
        (PlanConfig(device="h80"), "plan.device", "the peak of 'h80' is unknown; did you mean 'h800'?"),
        (PlanConfig(throughput="stated"), "plan.throughput", "stated needs plan.device"),
        (PlanConfig(throughput="probe", device="h800"), "plan.throughput", "which plan.device is not about"),
    ):
        (problem,) = check_plan(plan)
        assert problem[0] == path and message in problem[1]


MEASURED = {
    "seconds": [2.0, 2.0, 2.0, 2.2, 1.8], "tokens": 256, "device": "abacus", "precision": "fp32", "micro_batch": 4,
    "threads": 1, "when": "2026-01-02 03:04 UTC",
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


def test_hours_are_positions_over_tokens_a_second(tmp_path: Path) -> None:
    run = planned_run(tmp_path, PlanConfig())
    remember(run)
    plan = make_plan([run], print)
    assert plan.device_hours is not None
    assert plan.device_hours == pytest.approx(TOKENS / 128 / 3600)
    assert plan.runs[0].throughput.flops_per_second == pytest.approx(128 * flops_per_token(MODEL, VOCABULARY))
    text = "\n".join(bill(plan))
    assert "128 tokens/s on abacus, fp32, micro-batch 4, 1 thread; probed 2026-01-02 03:04 UTC, remembered" in text
