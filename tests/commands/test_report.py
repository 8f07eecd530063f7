"""What a sweep says of its table on the command line alone, without an experiment file."""

import csv
import io
import json
import shlex
from pathlib import Path
from typing import Any, get_args

import pytest
from rich.console import Console

from paribus.checks import compose_command
from paribus.cli import main
from paribus.commands import report
from paribus.commands import run as sweep
from paribus.commands.report import VERB_OF_STAGE, report_command
from paribus.config.arguments import parse
from paribus.config.groups.execution import RunStage
from paribus.pipeline.prepare import prepare_runs
from paribus.pipeline.root import RUN_ID_LENGTH
from support.finished_runs import finish
from support.recorded_sweeps import finished_sweep, record_command

SWEEP = ("-m", "scale=tiny", "corpus=pydocs_small", "tracking=none", "encoder=merge_rank,longest_first")
PRIMARY = "+experiment.table.primary=[bits_per_byte]"


@pytest.mark.usefixtures("undrawn")
def test_a_table_is_named_by_the_factors_as_one_without_the_block(tmp_path: Path) -> None:
    root = tmp_path / "root"
    command = parse([*SWEEP, f"root={root}", PRIMARY], "report")
    runs = prepare_runs(compose_command(command))
    for number, run in enumerate(runs):
        finish(run, number, tmp_path / "made")
    assert report_command(command, Console(file=io.StringIO(), width=200)) == 0
    (written,) = root.glob("reports/*/report.md")
    assert written.parent.name.startswith("encoder-")
    assert "Comparison by encoder" in written.read_text(encoding="utf-8")


@pytest.mark.parametrize("sign", ["", "+", "++"])
@pytest.mark.usefixtures("undrawn")
def test_a_table_is_asked_for_beside_the_name_of_its_sweep(tmp_path: Path, sign: str) -> None:
    root = tmp_path / "root"
    _, runs = record_command(parse([*SWEEP, f"root={root}"]))
    for number, run in enumerate(runs):
        finish(run, number, tmp_path / "made")
    ask = ["last", f"root={root}", f"{sign}experiment.table.baseline={{encoder: longest_first}}"]
    assert report_command(parse(ask, "report"), Console(file=io.StringIO(), width=200)) == 0
    (written,) = root.glob("reports/*/report.csv")
    compared = {(row["encoder"], row["baseline"]) for row in csv.DictReader(written.open(encoding="utf-8"))}
    assert {pair for pair in compared if pair[1]} == {("merge_rank", "longest_first")}


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def events(root: Path) -> list[dict[str, object]]:
    (path,) = root.glob("sweeps/*/events.jsonl")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.usefixtures("undrawn")
def test_another_table_leaves_the_sweep_s_own_report_as_it_is(tmp_path: Path, named: bool) -> None:
    root = tmp_path / "root"
    whole = [*SWEEP, f"root={root}"]
    for number, run in enumerate(record_command(parse(whole))[1]):
        finish(run, number, tmp_path / "made")
    last = ["last", f"root={root}"]
    report_command(parse(last, "report"), Console(file=io.StringIO(), width=200))
    (own,) = root.glob("reports/*")
    before, logged = contents(own), events(root)
    other = ["+experiment.table.baseline={encoder: longest_first}"]
    for _ in range(2):
        console = Console(file=io.StringIO(), width=200)
        report_command(parse([*(last if named else whole), *other], "report"), console)
    assert contents(own) == before
    (beside,) = (path for path in root.glob("reports/*") if path != own)
    assert beside.name.startswith(f"{own.name}-table-")
    assert isinstance(console.file, io.StringIO)
    assert f"report: {beside}/report.html" in console.file.getvalue()
    assert f"whose report {own} is left as it was" in console.file.getvalue()
    more = events(root)[len(logged) :]
    folders = [event["folder"] for event in more if event["event"] == "artifact"]
    assert folders == [beside.name.replace(own.name, "report")]
    assert {event["event"] for event in more} <= {"start", "artifact", "end"}


@pytest.mark.usefixtures("undrawn")
def test_the_table_of_an_experiment_file_leaves_the_report_of_a_sweep_without_it_as_it_is(tmp_path: Path) -> None:
    root, mine = tmp_path / "root", tmp_path / "mine"
    (mine / "experiment").mkdir(parents=True)
    (mine / "experiment" / "a.yaml").write_text("# @package _global_\nexperiment: {title: Mine}\n", encoding="utf-8")
    whole = [*SWEEP, f"root={root}"]
    for number, run in enumerate(record_command(parse(whole))[1]):
        finish(run, number, tmp_path / "made")
    report_command(parse(whole, "report"), Console(file=io.StringIO(), width=200))
    (own,) = root.glob("reports/*")
    before = contents(own)
    for _ in range(2):
        ask = [*whole, "--config-dir", str(mine), "experiment=a"]
        report_command(parse(ask, "report"), Console(file=io.StringIO(), width=200))
    assert contents(own) == before
    (beside,) = (path for path in root.glob("reports/*") if path != own)
    assert "Mine" in (beside / "report.md").read_text(encoding="utf-8")


@pytest.mark.usefixtures("undrawn")
def test_the_table_that_a_sweep_was_given_with_is_its_own(tmp_path: Path) -> None:
    root = tmp_path / "root"
    for number, run in enumerate(record_command(parse([*SWEEP, f"root={root}", PRIMARY]))[1]):
        finish(run, number, tmp_path / "made")
    for words in (["last", f"root={root}"], [*SWEEP, f"root={root}", f"+{PRIMARY}"]):
        report_command(parse(words, "report"), Console(file=io.StringIO(), width=200))
    (own,) = root.glob("reports/*")
    assert "-table-" not in own.name


@pytest.mark.usefixtures("undrawn")
def test_the_block_changes_no_run(tmp_path: Path) -> None:
    with_block, without = (
        prepare_runs(compose_command(parse([*SWEEP, f"root={tmp_path}", *block]))) for block in ((PRIMARY,), ())
    )
    assert [run.run_id for run in with_block] == [run.run_id for run in without]


# A report up to a stage before any training says which command makes the table of what is there then.


WORDS = ("scale=tiny", "corpus=files", "corpus.paths=[texts.txt]", "tracking=none", "tokenizer=bpe,bytes")


@pytest.mark.parametrize(
    ("until", "verb"),
    [("vocabulary", "tokens statistics"), ("tokens", "tokens statistics"), ("order", "orders"), ("contexts", "orders")],
)
@pytest.mark.usefixtures("beside_text")
def test_without_a_run_that_is_done_the_verb_of_the_table_is_the_answer(
    until: str, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", "-m", *WORDS, f"until={until}"]) == 2
    (told,) = capsys.readouterr().err.splitlines()
    before, _, typed = told.partition("; the table of what is there then: ")
    assert before == f"paribus report: until={until} ends before the models that a report compares"
    assert shlex.split(typed) == ["paribus", *verb.split(), "-m", *WORDS]
    assert main([*verb.split(), "--cfg", "job", *WORDS[:4]]) == 0


@pytest.mark.usefixtures("beside_text")
def test_beside_the_table_of_runs_that_are_done_it_is_said_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    finished_sweep(tmp_path / "made", "-m", "seed=0,1")
    seeds = [*WORDS[:4], "seed=0,1"]
    assert main(["report", "-m", *seeds, "until=tokens"]) == 0
    told = capsys.readouterr().out
    assert "the table of what is there then: paribus tokens statistics -m scale=tiny" in told and "report: " in told
    assert main(["report", "-m", *seeds]) == 0
    assert "paribus tokens statistics" not in capsys.readouterr().out


@pytest.mark.parametrize("until", ["training", "evaluation"])
@pytest.mark.usefixtures("beside_text")
def test_of_a_stage_of_models_the_report_itself_is_the_table(until: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "-m", *WORDS, f"until={until}"]) == 2
    assert "no finished run was found to report" in capsys.readouterr().err


@pytest.mark.usefixtures("beside_text")
def test_stages_with_such_a_table_are_stages_of_runs() -> None:
    assert VERB_OF_STAGE.keys() <= set(get_args(RunStage))


# A report that fails in a way that nobody foresaw: a line, a traceback in a file, and runs that stay done.

TOKENIZER_SWEEP = ["-m", "scale=tiny", "corpus=pydocs_small", "tracking=none", "tokenizer=bpe,bytes"]


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> None:
        raise KeyError("a field that\nis not there")

    monkeypatch.setattr(report, "collect", fails)


def log_of(root: Path) -> Path:
    (found,) = root.glob("sweeps/*/report.log")
    return found


@pytest.mark.parametrize("why", [(), ("--why",)])
@pytest.mark.usefixtures("broken")
def test_the_verb_says_it_in_a_line_and_where_the_traceback_is(
    why: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", *TOKENIZER_SWEEP, f"root={tmp_path}", *why]) == 1
    said = capsys.readouterr().err
    assert said.startswith("paribus report: KeyError:") and len(said.splitlines()) == 1
    assert str(log_of(tmp_path)) in said
    assert log_of(tmp_path).read_text(encoding="utf-8").startswith("Traceback")


@pytest.mark.usefixtures("broken")
def test_a_sweep_whose_runs_are_done_stays_a_success(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "is_made", lambda *_: True)
    shown = io.StringIO()
    assert sweep.run_command(parse([*TOKENIZER_SWEEP, f"root={tmp_path}"]), Console(file=shown, width=200)) == 0
    done, *runs, failure = shown.getvalue().splitlines()
    assert done == "2 of 2 runs done already"
    assert [line.split()[1:] for line in runs] == [["bpe"], ["bytes"]]
    assert all(len(line.split()[0]) == RUN_ID_LENGTH for line in runs)
    assert failure.startswith("no table: KeyError:") and str(log_of(tmp_path)) in failure


@pytest.mark.usefixtures("broken")
def test_a_log_that_cannot_be_written_is_no_second_failure(tmp_path: Path) -> None:
    composition = compose_command(parse([*TOKENIZER_SWEEP, f"root={tmp_path}"]))
    (tmp_path / "sweeps").write_text("no directory", encoding="utf-8")
    shown = io.StringIO()
    report.show_table(composition, prepare_runs(composition), Console(file=shown, width=200))
    assert "no table:" in shown.getvalue()
    assert "its traceback could not be written" in shown.getvalue()
