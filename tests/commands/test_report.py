"""`paribus report`: the report of a sweep, its table, the files of another table, and what it says without one."""

import csv
import io
import json
import re
from itertools import permutations
from pathlib import Path
from typing import Any

import pandas
import pytest
from rich.console import Console

from paribus import load_report
from paribus.checks import compose_command
from paribus.cli import main
from paribus.commands import report
from paribus.commands import run as run_verb
from paribus.commands.report import report_command
from paribus.config.arguments import parse
from paribus.errors import ConfigurationError, DataError
from paribus.pipeline.prepare import prepare_runs
from support.command_line import OVERRIDES, SWEEP
from support.finished_runs import finish
from support.recorded_sweeps import finished_sweep, record_command

RECORDED = ("-m", "scale=tiny", "corpus=pydocs_small", "tracking=none", "encoder=merge_rank,longest_first")
PRIMARY = "+experiment.table.primary=[bits_per_byte]"
BASELINE = "experiment.table.baseline={encoder: longest_first}"


def test_the_report_has_a_row_a_combination_and_links_its_runs(sweep: Path) -> None:
    (directory,) = (sweep / "paribus_runs/reports").iterdir()
    with (directory / "report.csv").open(encoding="utf-8") as file:
        bits = [row for row in csv.DictReader(file) if row["measure"] == "bits_per_byte"]
    runs = {run.name for run in (sweep / "paribus_runs/runs").iterdir()}
    assert {row["run_ids"] for row in bits} == runs and len(runs) == 4
    assert [row["baseline"] for row in bits] == ["", *["bpe, standard"] * 3]
    assert {path.name for path in directory.iterdir()} >= {"report.parquet", "tables.tex", "report.md"}
    assert (directory / "plots/vocabulary_overlap.svg").is_file()
    (log,) = (sweep / "paribus_runs/sweeps").glob("*/events.jsonl")
    events = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    shares = {event["name"]: event["value"] for event in events if event["event"] == "metric"}
    for arm, other in permutations(("bpe", "scaffold_lbpe")):
        assert 0.5 < shares[f"vocabulary_overlap/{arm} in {other}"] <= 1
        assert shares[f"vocabulary_overlap/occurrences per million of {arm} not in {other}"] > 0
    page = (directory / "report.html").read_text(encoding="utf-8")
    assert [run for run in runs if run not in page] == []
    assert re.search(r"Of it both first read \S+% .*at the same step, and \S+% .*within 5 steps", page)
    assert "http://" not in page.replace("http://www.w3.org", "")


def test_runs_that_differ_in_more_than_the_declared_factors_are_refused_with_the_fields(
    own_sweep: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = min((own_sweep / "paribus_runs/runs").glob("*/run.json"))
    changed = json.loads(record.read_text(encoding="utf-8"))
    changed["identity"]["training"]["learning_rate"] = 0.123
    record.write_text(json.dumps(changed), encoding="utf-8")
    assert main(["report", *SWEEP]) == 2
    assert "training.learning_rate" in capsys.readouterr().err
    assert main(["report", "--why", *SWEEP]) == 2
    why = capsys.readouterr().out
    assert "Not declared, so that the table is refused:\n  training.learning_rate\n" in why
    assert {"    0.001: ", "    0.123: "} <= {line[:11] for line in why.splitlines()}
    assert "  tokenizer.kind\n" in why


def test_a_report_lists_runs_that_are_missing(own_sweep: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "-m", *OVERRIDES, "arm=bpe,bytes", "duplicates=embedding"]) == 1
    assert "not started" in capsys.readouterr().out


def test_the_table_of_a_sweep_is_loaded_in_python_by_its_name(
    tmp_path: Path, without_plots: None, in_directory_with_text: None
) -> None:
    runs = finished_sweep(tmp_path / "made", "-m", "training.learning_rate=0.001,0.002", "seed=0,1")
    with pytest.raises(DataError, match=r"report.parquet: no such report; make it with `paribus report \w+ root="):
        load_report("last")
    assert main(["report"]) == 0
    (path,) = Path("paribus_runs/reports").glob("*/report.parquet")
    table = load_report("training.learning_rate")
    pandas.testing.assert_frame_equal(table, pandas.read_parquet(path))
    pandas.testing.assert_frame_equal(table, load_report("last", tmp_path / "paribus_runs"))
    for name, message in {runs[0].run_id: "is a run of the sweep", "nothing": "no run or sweep 'nothing'"}.items():
        with pytest.raises(ConfigurationError, match=message):
            load_report(name)


@pytest.fixture
def root(tmp_path: Path, without_plots: None) -> Path:
    """A root in which the runs of `RECORDED` are finished and on record."""
    for number, run in enumerate(record_command(parse([*RECORDED, f"root={tmp_path}/root"]))[1]):
        finish(run, number, tmp_path / "made")
    return tmp_path / "root"


def ask(root: Path, *words: str) -> str:
    """Make a report; what is printed."""
    console = Console(file=io.StringIO(), width=200)
    assert report_command(parse([*words, f"root={root}"], "report"), console) == 0
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.rglob("*") if path.is_file()}


@pytest.mark.parametrize("sign", ["", "+", "++"])
def test_a_table_is_asked_for_beside_the_name_of_its_sweep(root: Path, sign: str) -> None:
    ask(root, "last", f"{sign}{BASELINE}")
    (written,) = root.glob("reports/*/report.csv")
    compared = {(row["encoder"], row["baseline"]) for row in csv.DictReader(written.open(encoding="utf-8"))}
    assert {pair for pair in compared if pair[1]} == {("merge_rank", "longest_first")}


@pytest.mark.parametrize("name", [("last",), RECORDED])
def test_another_table_leaves_the_report_of_the_sweep_as_it_is(root: Path, name: tuple[str, ...]) -> None:
    def events() -> list[dict[str, object]]:
        (path,) = root.glob("sweeps/*/events.jsonl")
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]

    ask(root, "last")
    (own,) = root.glob("reports/*")
    assert own.name.startswith("encoder-")
    before, logged = contents(own), events()
    for _ in range(2):
        printed = ask(root, *name, f"+{BASELINE}")
    assert contents(own) == before
    (beside,) = (path for path in root.glob("reports/*") if path != own)
    assert beside.name.startswith(f"{own.name}-table-")
    assert f"report: {beside}/report.html" in printed and f"whose report {own} is left as it was" in printed
    more = events()[len(logged) :]
    assert [event["folder"] for event in more if event["event"] == "artifact"] == [
        beside.name.replace(own.name, "report")
    ]
    assert {event["event"] for event in more} <= {"start", "artifact", "end"}


def test_the_table_that_a_sweep_was_given_with_is_its_own_and_changes_no_run(
    tmp_path: Path, without_plots: None
) -> None:
    root = tmp_path / "root"
    _, runs = record_command(parse([*RECORDED, f"root={root}", PRIMARY]))
    for number, run in enumerate(runs):
        finish(run, number, tmp_path / "made")
    ask(root, "last")
    ask(root, *RECORDED, f"+{PRIMARY}")
    (own,) = root.glob("reports/*")
    assert "-table-" not in own.name
    without = prepare_runs(compose_command(parse([*RECORDED, f"root={root}"])))
    assert [run.run_id for run in runs] == [run.run_id for run in without]


TOKENIZERS = ["-m", "scale=tiny", "corpus=pydocs_small", "tracking=none", "tokenizer=bpe,bytes"]


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports fail in a way that nobody foresaw."""

    def fails(*_: Any) -> None:
        raise KeyError("a field that\nis not there")

    monkeypatch.setattr(report, "collect", fails)


@pytest.mark.parametrize("why", [(), ("--why",)])
@pytest.mark.usefixtures("broken")
def test_an_unforeseen_failure_is_one_line_that_names_the_file_of_its_traceback(
    why: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", *TOKENIZERS, f"root={tmp_path}", *why]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    (log,) = tmp_path.glob("sweeps/*/report.log")
    assert line.startswith("paribus report: KeyError:") and str(log) in line
    assert log.read_text(encoding="utf-8").startswith("Traceback")


@pytest.mark.usefixtures("broken")
def test_a_report_that_fails_leaves_the_sweep_a_success(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_verb, "is_made", lambda *_: True)
    console = Console(file=io.StringIO(), width=200)
    assert run_verb.run_command(parse([*TOKENIZERS, f"root={tmp_path}"]), console) == 0
    done, *runs, failure = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert done == "2 of 2 runs done already"
    assert [line.split()[1:] for line in runs] == [["bpe"], ["bytes"]]
    assert failure.startswith("no table: KeyError:") and "report.log" in failure
