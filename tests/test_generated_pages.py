"""Pages of documentation that benchmarks write say what these print, and agree with each other."""

import importlib
import re
import shutil
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from support.experiments import composition_of
from support.models import NAMED

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(autouse=True)
def _benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))


def module(name: str) -> ModuleType:
    return importlib.import_module(name)


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def test_the_page_of_costs_has_the_bills_that_the_plans_give() -> None:
    costs = module("paper_costs")
    assert page("costs.md").splitlines() == "\n".join(costs.page()).splitlines(), (
        "run: python benchmarks/paper_costs.py > docs/costs.md"
    )
    (longest,) = [each for each in costs.EXPERIMENTS if each.title == "LBPE, 468M"]
    step = 1024 * 1024
    tokens = -(-100_000_000_000 // step) * step
    token_flops = 6 * (468_239_360 - 32_000 * 1024) + 12 * 24 * 1024 * 1024
    assert costs.plan_of(longest).device_hours == pytest.approx(2 * tokens * token_flops / (0.4 * 989e12) / 3600)


def test_the_page_of_models_has_every_size_with_the_parameters_that_papers_state() -> None:
    models = module("models")
    sizes, stated = models.sizes_table(models.named_sizes()), models.stated_table(NAMED)
    assert sizes in page("models.md") and stated in page("models.md"), "run: python benchmarks/models.py"
    row = next(line for line in page("papers.md").splitlines() if line.startswith("| `model` "))
    assert set(re.findall(r"`([^`]+)`", row)) - {"model"} == set(NAMED)
    assert set(re.findall(r"^\| `([^`]+)`", sizes, re.MULTILINE)) - {"model"} == set(NAMED)
    for line in stated.splitlines()[2:]:
        difference = abs(float(line.split("|")[-2].removesuffix(" % ")))
        assert difference <= (7.5 if "in_context" in line else 3.0), line


@pytest.fixture
def measured(tmp_path: Path) -> list[Any]:
    """Every claim with the measurement that docs/findings.json has of it."""
    file = shutil.copyfile(ROOT / "docs/findings.json", tmp_path / "findings.json")
    claims = [*module("claims.papers").claims(), *module("claims.segmentation").segmentation_claims()]
    saved: list[Any] = module("claims.kept").with_kept([(claim, None) for claim in claims], file)
    return saved


def test_the_page_of_findings_says_what_its_measurements_say(measured: list[Any]) -> None:
    assert {claim.experiment for claim, measurement in measured if claim.number and measurement is None} == set()
    judged, findings = module("claims.claim").judge_claims(measured), module("findings")
    for part in (findings.page_top(judged), *findings.sections(judged)):
        assert part in page("findings.md")
    tested = [measurement for claim, measurement in measured if measurement and not claim.outside]
    assert [each.difference for each in tested if each.difference == round(each.difference, 6)] == []
    assert all(each.p_value is not None and each.freedom > 0 for each in tested)
    assert all(
        re.fullmatch("[0-9a-f]{40}", each.read_by) and bool(each.trained_by) == (each.seeds > 0) for each in tested
    )


def test_a_verdict_is_the_sign_of_a_difference_whose_adjusted_p_value_is_below_5_per_cent() -> None:
    claims = module("claims.claim")
    cases = {  # sign of the claim, difference, adjusted p-value
        (1, 0.5, 0.049): "holds",
        (1, -0.5, 0.049): "does not hold",
        (-1, -0.5, 0.0): "holds",
        (-1, 0.5, 0.05): "not shown here",
        (1, 0.5, None): "not run",
    }
    fields = {"paper": "P", "where": "T", "says": "x", "size": "", "experiment": "e", "number": "n"}
    verdicts = {
        case: claims.JudgedClaim(claims.Claim(**fields, sign=case[0]), claims.Measurement(case[1]), case[2]).verdict
        for case in cases
    }
    assert verdicts == cases
    assert claims.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])  # his paper's example


def test_every_claim_names_an_experiment_and_rows_of_it() -> None:
    for claim in module("claims.papers").claims():
        if not claim.number:
            continue
        composition = composition_of(
            f"experiment={claim.experiment}", *(["start.run=ID"] if claim.experiment == "findings/continual" else [])
        )
        typed = [dict(text.split("=", 1) for text in job.overrides) for job in composition.jobs]
        for row in (claim.row, claim.against):
            assert set(row) <= set(composition.factors), claim.says
            assert any(all(job.get(name) == label for name, label in row.items()) for job in typed), claim.says
