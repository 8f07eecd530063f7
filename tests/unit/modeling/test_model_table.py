"""The tables of the documentation are those of the code."""

import re
from pathlib import Path

import pytest

from paribus.modeling.sizes import STATED, named_sizes
from paribus.modeling.table import sizes_table, stated_table, tables
from support.models import CONF, NAMED

ROOT = Path(__file__).resolve().parents[3]
DOCUMENT = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")


def test_the_committed_tables_are_what_the_command_prints() -> None:
    sizes, stated = tables().split("\n\n")
    assert sizes.strip() in DOCUMENT
    assert stated.strip() in DOCUMENT


def test_every_named_size_is_in_both_tables() -> None:
    methods = (ROOT / "docs/papers.md").read_text(encoding="utf-8").splitlines()
    row = next(line for line in methods if line.startswith("| `model` "))
    assert set(re.findall(r"`([^`]+)`", row)) - {"model"} == set(NAMED)
    assert set(re.findall(r"^\| `([^`]+)`", sizes_table(NAMED), re.MULTILINE)) - {"model"} == set(NAMED)


def test_counted_parameters_differ_from_the_papers_by_the_percentage_shown() -> None:
    for line, stated in zip(stated_table(NAMED).splitlines()[2:], STATED, strict=True):
        counted, difference = (cell.strip() for cell in line.split("|")[-3:-1])
        exact = 100 * (int(counted.replace(",", "")) / stated.parameters - 1)
        assert float(difference.removesuffix(" %")) == pytest.approx(exact, abs=0.051)


def test_shapes_that_papers_give_have_their_parameters_within_three_percent() -> None:
    for line in stated_table(NAMED).splitlines()[2:]:
        difference = abs(float(line.split("|")[-2].removesuffix(" % ")))
        assert difference <= (7.5 if "in_context" in line else 3.0), line


def test_a_file_that_is_no_model_is_refused(tmp_path: Path) -> None:
    (tmp_path / "odd.yaml").write_text("kind: mamba\n")
    with pytest.raises(ValueError, match="mamba"):
        named_sizes(tmp_path)
    assert named_sizes(CONF) == NAMED
