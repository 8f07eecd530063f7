"""What verbs print with --json: one document with exactly the documented keys, and nothing else on standard output."""

import json
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from paribus.cli import main
from paribus.pipeline.display import print_json
from support.recorded_sweeps import OVERRIDES, finished_sweep

pytestmark = pytest.mark.usefixtures("without_plots")

PAGE = Path(__file__).resolve().parents[2] / "docs" / "json.md"
SWEEP = ("-m", "training.learning_rate=0.001,0.002", "seed=0,1")
ARGUMENTS = {"plan": ["-m", *OVERRIDES, "tokenizer=bpe,scaffold_bpe", "root=fresh"], "status": ["last"], "report": []}


@pytest.fixture(scope="module", autouse=True)
def _finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Four finished runs below `paribus_runs`, and of each verb what it prints."""
    directory = tmp_path_factory.mktemp("finished")
    (directory / "texts.txt").write_text("some text", encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(directory)
        finished_sweep(directory / "made", *SWEEP)
        yield


def document(verb: str, capsys: pytest.CaptureFixture[str], *more: str, status: int = 0) -> dict[str, Any]:
    assert main([verb, "--json", *ARGUMENTS[verb], *more]) == status
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def documented(heading: str) -> set[str]:
    """Keys in the table below a heading of the page."""
    section = re.split(r"^#+ ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    (body,) = (part for part in section if part.partition("\n")[0] == heading)
    cells = re.findall(r"^\| (`[^|]+) \|", body, flags=re.MULTILINE)
    return {key for cell in cells for key in re.findall(r"`([^`]+)`", cell)}


def test_the_keys_are_those_that_are_documented(capsys: pytest.CaptureFixture[str]) -> None:
    for verb, below in {"plan": "runs", "status": "runs", "report": "rows"}.items():
        printed = document(verb, capsys)
        assert set(printed) == documented(verb)
        assert {frozenset(inner) for inner in printed[below]} == {frozenset(documented(f"{verb} {below}"))}
    assert main(["status", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert set(printed) == documented("status of a root")
    for name in ("sweeps", "runs"):
        assert {frozenset(inner) for inner in printed[name]} == {frozenset(documented(f"status of a root: {name}"))}


def test_a_report_has_the_numbers_of_its_files(capsys: pytest.CaptureFixture[str]) -> None:
    found = document("report", capsys)
    assert [list(row["factors"].values()) for row in found["rows"]] == [["0.001"], ["0.002"]]
    assert all(len(row["runs"]) == len(row["seeds"]) == 2 for row in found["rows"])
    lines = Path(found["files"]["report.csv"]).read_text(encoding="utf-8").splitlines()
    values = {repr(cell["value"]) for row in found["rows"] for cell in row["cells"].values() if cell["value"]}
    assert values
    assert all(any(value in line.split(",") for line in lines) for value in values)


def test_a_report_that_lacks_runs_says_which_and_exits_with_one(capsys: pytest.CaptureFixture[str]) -> None:
    found = document("report", capsys, "-m", *OVERRIDES, "training.learning_rate=0.001,0.002", "seed=0,2", status=1)
    reasons = [(run["factors"]["training.learning_rate"], run["reason"]) for run in found["missing"]]
    assert reasons == [("0.001", "seed 2: not started"), ("0.002", "seed 2: not started")]


def test_errors_go_to_standard_error_with_their_exit_status(capsys: pytest.CaptureFixture[str]) -> None:
    refusals = dict.fromkeys(("plan", "status", "report"), "nonsense")
    for verb, message in (refusals | {"run": "it is one of paribus plan and status and report"}).items():
        assert main([verb, "--json", "nonsense=1"]) == 2
        captured = capsys.readouterr()
        assert captured.out == "" and message in captured.err


def test_numbers_that_are_not_finite_are_null(capsys: pytest.CaptureFixture[str]) -> None:
    content: Mapping[str, Any] = {"a": math.nan, "b": [math.inf, 1.5], "c": ({"d": -math.inf},), "é": "ö"}
    print_json(content)
    printed = capsys.readouterr().out
    assert json.loads(printed) == {"a": None, "b": [None, 1.5], "c": [{"d": None}], "é": "ö"}
    assert printed.isascii()
