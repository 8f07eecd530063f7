"""What a plan says a training takes, before and after it has run."""

import json
from pathlib import Path

import pytest

from paribus.config.arguments import parse
from paribus.config.compose import compose_command
from paribus.errors import ConfigurationError
from paribus.modeling.counts import training_flops
from paribus.pipeline.layout import Layout
from paribus.pipeline.plan import PlannedRun, make_plan
from paribus.pipeline.prepare import PreparedRun, prepare

BASE = ("scale=tiny", "corpus=pydocs_small")
LENGTH = {"tokens", "steps", "flops"}


def prepared(root: Path, *overrides: str) -> PreparedRun:
    (run,) = prepare(compose_command(parse([*BASE, f"root={root}", *overrides])))
    return run


def planned(root: Path, *overrides: str) -> PlannedRun:
    return make_plan([prepared(root, *overrides)]).runs[0]


@pytest.mark.parametrize(
    ("overrides", "estimated"),
    [
        ((), {"text_bytes"}),
        (("packing=best_fit",), {"text_bytes", *LENGTH}),
        (("packing=one_document",), {"text_bytes", *LENGTH}),
        (("budget=equal_text",), LENGTH),
        (("budget=equal_text", "packing=best_fit"), LENGTH),
    ],
)
def test_what_padding_or_text_decides_is_estimated(tmp_path: Path, overrides: tuple[str, ...], estimated: set) -> None:
    run = planned(tmp_path, *overrides)
    assert run.estimated == estimated
    assert run.padded == any("packing" in override for override in overrides)


def test_full_contexts_are_planned_to_the_step(tmp_path: Path) -> None:
    run = planned(tmp_path, "budget.tokens=1000", "training.warmup_steps=1")
    model = prepared(tmp_path).job.config.model
    assert (run.steps, run.tokens) == (2, 2 * 8 * 64)
    assert run.flops == training_flops(model, 512, 2 * 8 * 64)


def test_a_trained_run_shows_what_its_record_says(tmp_path: Path) -> None:
    run = prepared(tmp_path, "packing=best_fit")
    node = run.nodes["checkpoints"]
    directory = Layout.of(run.job.config).store.root / node.name / node.key
    directory.mkdir(parents=True)
    result = {"tokens": 70_000, "positions": 90_112, "text_bytes": 250_000, "steps": 176, "flops": 123_456_789}
    (directory / "record.json").write_text(json.dumps({"result": result}), encoding="utf-8")
    shown = make_plan([run]).runs[0]
    assert (shown.tokens, shown.text_bytes, shown.steps, shown.flops) == (70_000, 250_000, 176, 123_456_789.0)
    assert shown.estimated == frozenset()


@pytest.mark.parametrize("packing", ["best_fit", "one_document"])
def test_a_budget_of_padded_contexts_is_judged_when_they_are_known(tmp_path: Path, packing: str) -> None:
    short = ("budget.tokens=500", "training.warmup_steps=5")
    with pytest.raises(ConfigurationError, match="less than one step"):
        prepared(tmp_path, *short)
    assert planned(tmp_path, *short, f"packing={packing}").steps == 1
