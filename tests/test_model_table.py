"""The tables of docs/models.md are those that benchmarks/models.py prints."""

import importlib
import re
from pathlib import Path
from types import ModuleType

import pytest

from support.models import NAMED

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("models")


def test_the_documented_tables_are_what_the_command_prints_and_have_every_size(models: ModuleType) -> None:
    document = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
    sizes = models.sizes_table(models.named_sizes())
    assert sizes in document and models.stated_table(NAMED) in document, "run: python benchmarks/models.py"
    methods = (ROOT / "docs/papers.md").read_text(encoding="utf-8").splitlines()
    row = next(line for line in methods if line.startswith("| `model` "))
    assert set(re.findall(r"`([^`]+)`", row)) - {"model"} == set(NAMED)
    assert set(re.findall(r"^\| `([^`]+)`", sizes, re.MULTILINE)) - {"model"} == set(NAMED)


def test_shapes_that_papers_give_have_their_parameters_within_three_percent(models: ModuleType) -> None:
    for line in models.stated_table(NAMED).splitlines()[2:]:
        difference = abs(float(line.split("|")[-2].removesuffix(" % ")))
        assert difference <= (7.5 if "in_context" in line else 3.0), line
