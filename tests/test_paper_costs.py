"""The bills of the papers' experiments in the documentation are those that `paribus plan` gives."""

import importlib
import re
from pathlib import Path
from types import ModuleType

import pytest

from paribus.config.compose import Composition
from paribus.config.groups.tokenization import draws_of
from support.experiments import (
    DIRECTORY,
    FILES,
    composition_of,
    header_commands,
    name_of,
    of_tokenizers,
    overrides_of,
    words_of,
)

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def costs(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("paper_costs")


def test_the_documented_bills_are_what_the_plans_give(costs: ModuleType) -> None:
    page = (ROOT / "docs" / "costs.md").read_text(encoding="utf-8")
    assert page.splitlines() == "\n".join(costs.page()).splitlines(), (
        "run: python benchmarks/paper_costs.py > docs/costs.md"
    )


def test_a_bill_is_what_a_hand_reckons(costs: ModuleType) -> None:
    experiment = next(each for each in costs.EXPERIMENTS if each.title == "LBPE, 468M")
    plan = costs.plan_of(experiment)
    step = 1024 * 1024
    tokens = -(-100_000_000_000 // step) * step
    token_flops = 6 * (468_239_360 - 32_000 * 1024) + 12 * 24 * 1024 * 1024
    hours = 2 * tokens * token_flops / (0.4 * 989e12) / 3600
    assert plan.device_hours == pytest.approx(hours)
    assert f"| {hours:,.0f} | {hours / 128:.2g} |" in costs.row(experiment, plan)


def test_the_total_keeps_to_the_formula_and_counts_the_first_steps_of_a_continued_training_once(
    costs: ModuleType,
) -> None:
    chosen = [each for each in costs.EXPERIMENTS if each.title in ("LBPE, 468M", "LBPE, 468M, 300B tokens")]
    once, longer = plans = [costs.plan_of(experiment) for experiment in chosen]
    said = costs.total(plans)
    assert said.startswith("All of them: 4 trainings (2 more are shared and counted once), ")
    (flops,) = map(float, re.findall(r", (\S+) FLOPs", said))
    (hours,) = (float(found.replace(",", "")) for found in re.findall(r"\*\*(\S+) device-hours", said))
    assert flops == pytest.approx(hours * 3600 * 0.4 * 989e12, rel=2e-3)
    assert flops == pytest.approx(3 * once.flops, rel=2e-3)
    assert "| 4 | 100.0B and on to 300.0B |" in costs.row(chosen[1], longer)


def test_the_ablation_without_removal_of_near_duplicates_is_a_training_of_its_own(costs: ModuleType) -> None:
    keys = {
        experiment.title: {run.training.key for run in costs.plan_of(experiment).trainings}
        for experiment in costs.EXPERIMENTS
        if " 1.5B" in experiment.title
    }
    (kept,) = keys.pop("In-Context, ablation: near duplicates kept, 1.5B")
    assert len(keys) == 2 and all(kept not in others for others in keys.values())


def test_every_experiment_for_which_a_paper_trains_models_has_a_bill(costs: ModuleType) -> None:
    billed = {experiment.overrides.split()[0].removeprefix("experiment=") for experiment in costs.EXPERIMENTS}
    named = {name for path in FILES if "/" in (name := name_of(path)) and not name.startswith("findings/")}
    assert {name for name in named if not of_tokenizers(name)} == billed


def test_both_pairs_of_languages_are_billed_as_the_header_has_them_at_the_papers_size(costs: ModuleType) -> None:
    def told(overrides: list[str]) -> tuple[object, ...]:
        composition: Composition = composition_of(*overrides)
        (config, *_) = configs = [job.config for job in composition.jobs]
        draws = max(draws_of(each.encoder) for each in configs)
        return config.model, config.training, config.budget, config.tokenizer, config.evaluation.tasks, draws

    lines = header_commands(DIRECTORY / "scaffold_bpe" / "table_5.yaml")
    header = [told(overrides_of(words_of(line))) for line in lines if "scale=paper" in line]
    billed = [
        told(experiment.overrides.replace("'", "").split())
        for experiment in costs.EXPERIMENTS
        if "scaffold_bpe/table_5" in experiment.overrides
    ]
    assert len(header) == 2
    assert billed == header
