"""What a sweep says of its table on the command line alone, without an experiment file."""

import csv
import io
from pathlib import Path

import pytest
from rich.console import Console

from paribus.checks.command import compose_command
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


def test_the_block_changes_no_run(tmp_path: Path) -> None:
    with_block, without = (
        prepare(compose_command(parse([*SWEEP, f"root={tmp_path}", *block]))) for block in ((PRIMARY,), ())
    )
    assert [run.run_id for run in with_block] == [run.run_id for run in without]


class Closed(io.StringIO):
    """What nobody reads from the first table on."""

    def write(self, text: str) -> int:
        if "bits / byte" in text:
            raise BrokenPipeError
        return super().write(text)


def test_a_report_that_nobody_sees_is_written_and_told_to_the_tracker(tmp_path: Path) -> None:
    root = tmp_path / "root"
    command = parse([*SWEEP, f"root={root}"], "report")
    for number, run in enumerate(prepare(compose_command(command))):
        finish(run, number, tmp_path / "made")
    with pytest.raises((BrokenPipeError, SystemExit)):
        report_command(command, Console(file=Closed(), width=200))
    assert len(list(root.glob("reports/*/report.html"))) == 1
    (events,) = root.glob("sweeps/*/events.jsonl")
    assert "FINISHED" in events.read_text(encoding="utf-8")
