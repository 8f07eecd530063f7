"""What `paribus run` says before a sweep and at its end."""

import io
import shlex
from pathlib import Path

import pytest
from rich.console import Console

from paribus.checks import compose_command
from paribus.cli import main
from paribus.commands import run as sweep
from paribus.config.arguments import parse
from paribus.pipeline.prepare import prepare_runs
from paribus.pipeline.root import OutputRoot
from paribus.store.artifacts import read_record, write_record
from support.finished_runs import finish
from support.recorded_sweeps import OVERRIDES, finished_sweep


class BegunError(Exception):
    """The first run would begin now."""


def begin(*_: object) -> bool:
    raise BegunError


@pytest.mark.parametrize(("label", "told"), [("unigram", True), ("bpe", False)])
def test_a_run_says_that_no_row_is_the_baseline_before_it_begins(
    label: str, told: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep._Launches, "carry_out", begin)
    words = ["-m", "scale=tiny", "corpus=pydocs_small", "tracking=none", "tokenizer=bpe,bytes", f"root={tmp_path}"]
    shown = io.StringIO()
    with pytest.raises(BegunError):
        command = parse([*words, f"+experiment.table.baseline={{tokenizer:{label}}}"])
        sweep.run_command(command, Console(file=shown, width=200))
    assert ("no table of these runs alone: experiment.table.baseline: no row has" in shown.getvalue()) == told


# A sweep of more seeds says so where a report has judged fewer of its trainings before.

LOOKED = "Warning: an earlier report judged fewer seeds of these trainings: "


def test_seeds_that_are_added_after_a_report_are_named_and_those_of_two_are_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arms = [
        "scale=tiny",
        "corpus=pydocs_small",
        "tokenizer=bpe",
        "encoder=merge_rank,longest_first",
        "tracking=none",
        f"root={tmp_path / 'root'}",
    ]
    for number, run in enumerate(prepare_runs(compose_command(parse(["-m", *arms, "seed=0,1,2,3"])))):
        finish(run, number, tmp_path / "made")
    said = []
    for seeds in ("0,1", "0,1,2", "0,1,2,3", "0,1,2"):
        assert main(["run", "-m", *arms, f"seed={seeds}"]) == 0
        said.append(" ".join(capsys.readouterr().out.split()))
    assert [LOOKED in text for text in said] == [False, False, True, False]
    assert f"{LOOKED}encoder " in said[2] and "(3 seeds). If seeds were added because of what it showed" in said[2]


# A run that was given alone ends with its scores and the command of its report.


@pytest.mark.usefixtures("undrawn", "beside_text")
def test_scores_come_before_the_command_of_the_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (run,) = finished_sweep(tmp_path / "made", "tokenizer=bpe", "seed=3")
    node = run.nodes["evaluation"]
    path = OutputRoot.of(run.job.config).store.path(node.name, node.key)
    content = read_record(path)  # tests write scores as files alone
    content["result"]["metrics"] = {"eval/bits_per_byte": 0.77666, "eval/boolq/0shot/acc": 0.5}
    write_record(path, content)
    assert main(["run", *OVERRIDES, "tokenizer=bpe", "seed=3"]) == 0
    *_, scores, _, report = capsys.readouterr().out.splitlines()
    assert scores == "0.7767 bits per byte · boolq 0.5"
    assert shlex.split(report) == ["paribus", "report", *OVERRIDES, "tokenizer=bpe", "seed=3"]
    assert main(["run", *OVERRIDES, "tokenizer=bpe", "seed=3", "until=training"]) == 0
    assert "its report" not in capsys.readouterr().out
