"""What a sweep says of its table on the command line alone, without an experiment file."""

import csv
import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from paribus.checks import compose_command
from paribus.commands.report import report_command
from paribus.config.arguments import parse
from paribus.pipeline.prepare import prepare
from support.finished_runs import finish
from support.recorded_sweeps import record_command

pytestmark = pytest.mark.usefixtures("undrawn")

SWEEP = ("-m", "scale=tiny", "corpus=pydocs_small", "tracking=none", "encoder=merge_rank,longest_first")
PRIMARY = "+experiment.table.primary=[bits_per_byte]"


def test_a_table_is_named_by_the_factors_as_one_without_the_block(tmp_path: Path) -> None:
    root = tmp_path / "root"
    command = parse([*SWEEP, f"root={root}", PRIMARY], "report")
    runs = prepare(compose_command(command))
    for number, run in enumerate(runs):
        finish(run, number, tmp_path / "made")
    assert report_command(command, Console(file=io.StringIO(), width=200)) == 0
    (written,) = root.glob("reports/*/report.md")
    assert written.parent.name.startswith("encoder-")
    assert "Comparison by encoder" in written.read_text(encoding="utf-8")


@pytest.mark.parametrize("sign", ["", "+", "++"])
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


def test_the_table_that_a_sweep_was_given_with_is_its_own(tmp_path: Path) -> None:
    root = tmp_path / "root"
    for number, run in enumerate(record_command(parse([*SWEEP, f"root={root}", PRIMARY]))[1]):
        finish(run, number, tmp_path / "made")
    for words in (["last", f"root={root}"], [*SWEEP, f"root={root}", f"+{PRIMARY}"]):
        report_command(parse(words, "report"), Console(file=io.StringIO(), width=200))
    (own,) = root.glob("reports/*")
    assert "-table-" not in own.name


def test_the_block_changes_no_run(tmp_path: Path) -> None:
    with_block, without = (
        prepare(compose_command(parse([*SWEEP, f"root={tmp_path}", *block]))) for block in ((PRIMARY,), ())
    )
    assert [run.run_id for run in with_block] == [run.run_id for run in without]
