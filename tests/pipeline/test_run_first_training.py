"""`start=continued`: a run whose training goes on from a shorter one of its own, which other runs share."""

import io
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from paribus.checks import compose_command
from paribus.config.arguments import parse
from paribus.config.groups.execution import TrackingConfig
from paribus.config.groups.model import ContinuedStart
from paribus.config.groups.training import EqualTokensBudget
from paribus.errors import ConfigurationError
from paribus.pipeline import run as running
from paribus.pipeline.clean import Cleaning
from paribus.pipeline.display import Display
from paribus.pipeline.graph import needed_for, to_make
from paribus.pipeline.prepare import prepare_runs
from paribus.pipeline.prepared import PreparedRun
from paribus.pipeline.root import OutputRoot, named_root
from paribus.pipeline.run import perform
from paribus.planning.plan import make_plan
from paribus.planning.show import bill
from paribus.store.provenance import loaded_code
from support.plans import TOKENS, planned_run, store_record

FIRST = TOKENS // 4
START = ContinuedStart(tokens=FIRST)
QUIET = TrackingConfig(kind="none")


def continued(root: Path, **groups: Any) -> PreparedRun:
    return planned_run(root, start=START, tracking=QUIET, **groups)


def shorter(root: Path, **groups: Any) -> PreparedRun:
    """The run whose training a continued one goes on from."""
    return planned_run(root, budget=EqualTokensBudget(tokens=FIRST), tracking=QUIET, **groups)


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Callable[[PreparedRun], list[tuple[str, dict[str, str]]]]:
    """Performs a run whose stages write a file each; the stages that this made, with their inputs."""
    made: list[tuple[str, dict[str, str]]] = []

    def execute(job: dict[str, Any], *others: Any, **options: Any) -> dict[str, Any]:
        made.append((job["stage"], {name: Path(path).parent.name for name, path in job["inputs"].items()}))
        (Path(job["output"]) / "state").mkdir()
        (Path(job["output"]) / "state" / "data").write_text(json.dumps(job["config"]["budget"]), encoding="utf-8")
        return {"documents": 1, "epochs": 0.1, "steps": 1}

    monkeypatch.setattr(running, "execute", execute)

    def performed(run: PreparedRun) -> list[tuple[str, dict[str, str]]]:
        made.clear()
        assert perform(run.job.config, Display(Console(file=io.StringIO())), loaded_code()) is None
        return list(made)

    return performed


def test_the_first_training_is_the_artefact_of_a_run_that_trains_no_longer(tmp_path: Path) -> None:
    run, short = continued(tmp_path), shorter(tmp_path)
    assert run.nodes["first_training"].place == short.nodes["training"].place
    assert run.nodes["first_training"].identity == short.nodes["training"].identity
    assert run.nodes["training"].key not in {short.nodes["training"].key, planned_run(tmp_path).nodes["training"].key}
    assert [name for name in run.nodes if name not in short.nodes] == ["first_training"]
    assert "training" not in needed_for(run.nodes, "first_training")
    longer = planned_run(tmp_path, start=ContinuedStart(tokens=2 * FIRST), tracking=QUIET)
    assert longer.nodes["training"].key != run.nodes["training"].key


def test_the_first_training_is_made_with_its_own_budget_and_given_to_the_second(tmp_path: Path, make: Any) -> None:
    run, short = continued(tmp_path), shorter(tmp_path)
    made = dict(make(run))
    assert list(made).index("first_training") == list(made).index("training") - 1
    read = {name: name for name in ("tokens", "order", "contexts")}
    assert made["first_training"] == read
    assert made["training"] == read | {"first_training": "training"}
    store = OutputRoot.of(run.job.config).store
    budgets = [
        json.loads((store.path(*run.nodes[name].place) / "state" / "data").read_text(encoding="utf-8"))["tokens"]
        for name in ("first_training", "training")
    ]
    assert budgets == [FIRST, TOKENS]
    assert [name for name, _ in make(short)] == ["evaluation"]
    assert store.find("first_training", run.nodes["first_training"].key) is None


def test_a_run_that_finds_it_trains_the_rest_alone(tmp_path: Path, make: Any) -> None:
    make(shorter(tmp_path))
    assert [name for name, _ in make(continued(tmp_path))] == ["training", "evaluation"]
    assert make(continued(tmp_path)) == []


def test_the_first_training_of_a_run_that_is_not_done_stays_where_its_own_run_is_named(
    tmp_path: Path, make: Any
) -> None:
    run, short = continued(tmp_path), shorter(tmp_path)
    make(short)
    root = named_root(str(tmp_path))
    assert [one.kind for one in Cleaning.of(root).of_runs([short.run_id])] == ["weights and optimizer states"]
    make(replace(run, job=replace(run.job, config=replace(run.job.config, until="first_training"))))
    assert Cleaning.of(root).of_runs([short.run_id]) == []


def test_a_first_training_without_its_optimizer_is_made_again(tmp_path: Path, make: Any) -> None:
    """No stage reads an artefact of which files were removed."""
    run, short = continued(tmp_path), shorter(tmp_path)
    make(short)
    store, place = OutputRoot.of(run.job.config).store, short.nodes["training"].place
    held = store.claim(*place)
    assert held is not None
    with held:
        store.prune(held, *place, ["state/data"])
    assert make(short) == [] and to_make(short.nodes, store) == set()
    assert to_make(run.nodes, store) == {"first_training", "training", "evaluation"}
    assert [name for name, _ in make(run)] == ["first_training", "training", "evaluation"]
    assert (store.path(*place) / "state" / "data").is_file() and make(run) == make(short) == []


def test_a_plan_bills_both_trainings_and_each_once(tmp_path: Path) -> None:
    run, short, whole = continued(tmp_path), shorter(tmp_path), planned_run(tmp_path)
    plan = make_plan([run])
    assert len(plan.trainings) == 2
    assert plan.flops == make_plan([whole]).flops
    assert plan.runs[0].length.steps_before == 25
    assert "still to train: 2 trainings" in "\n".join(bill(plan))
    assert len(make_plan([run, short]).trainings) == 2
    result = {"tokens": FIRST, "text_bytes": 1, "steps": 25, "epochs": 0.1, "flops": 1e9, "parameters": 1}
    store_record(short, "training", result | {"device_hours": 3.0})
    plan = make_plan([run])
    assert [planned.length.steps for planned in plan.trainings] == [100]
    assert plan.flops == pytest.approx(0.75 * make_plan([whole]).flops)
    assert (plan.stages[-2].state, plan.device_hours) == ("missing", plan.runs[0].hours)


def test_too_long_a_first_training_is_refused(tmp_path: Path) -> None:
    cases = {
        "start.tokens=16K evaluation.last_checkpoints=4": "evaluation.last_checkpoints",
        "budget=equal_text start.text=60KB evaluation.last_checkpoints=4": "evaluation.last_checkpoints",
        "budget=equal_flops start.flops=1K": "start.flops",
        "start.tokens=16K evaluation.last_checkpoints=3": None,
    }
    for words, path in cases.items():
        overrides = ("scale=tiny", "corpus=pydocs_small", "start=continued", f"root={tmp_path}", *words.split())
        if path is None:
            assert len(prepare_runs(compose_command(parse(overrides)))) == 1, words
            continue
        with pytest.raises(ConfigurationError, match=rf"^{re.escape(path)}: "):
            prepare_runs(compose_command(parse(overrides)))
