"""A run that was given alone ends with its scores and with commands that can be given as they are."""

import shlex
from pathlib import Path

import pytest

from paribus.checks.command import compose_command
from paribus.cli import main
from paribus.commands.further.more_seeds import with_three_seeds
from paribus.config.arguments import parse
from paribus.config.groups.start import CheckpointStart
from paribus.pipeline.output_root import OutputRoot
from paribus.pipeline.prepared_run import PreparedRun
from paribus.store.record import read_record, write_record
from support.recorded_sweeps import OVERRIDES, finished_sweep

pytestmark = pytest.mark.usefixtures("undrawn")

WORDS = ("tokenizer=bpe", "seed=3")


@pytest.fixture(name="run")
def _run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PreparedRun:
    monkeypatch.chdir(tmp_path)
    Path("texts.txt").write_text("some text", encoding="utf-8")
    (run,) = finished_sweep(tmp_path / "made", *WORDS)
    return run


def score(run: PreparedRun) -> None:
    """Let the record of its evaluation have scores, which tests write as files alone."""
    node = run.nodes["evaluation"]
    path = OutputRoot.of(run.job.config).store.path(node.name, node.key)
    content = read_record(path)
    content["result"]["metrics"] = {"eval/bits_per_byte": 0.77666, "eval/boolq/0shot/acc": 0.5}
    write_record(path, content)


def test_scores_come_first_and_the_commands_give_what_they_say(
    run: PreparedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    score(run)
    assert main(["run", *OVERRIDES, *WORDS]) == 0
    *_, scores, _, report, _, seeds = capsys.readouterr().out.splitlines()
    assert scores == "0.7767 bits per byte · boolq 0.5"
    assert shlex.split(report) == ["paribus", "report", *OVERRIDES, *WORDS]
    assert shlex.split(seeds) == ["paribus", "run", "-m", *OVERRIDES, "tokenizer=bpe", "seed=0,1,3"]
    again = compose_command(parse(shlex.split(seeds)[2:]))
    assert [job.config.seed for job in again.jobs] == [0, 1, 3]


def test_a_sweep_ends_with_its_table_instead(
    run: PreparedRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    finished_sweep(tmp_path / "more", "-m", "tokenizer=bpe", "seed=4,5")
    assert main(["run", "-m", *OVERRIDES, "tokenizer=bpe", "seed=4,5"]) == 0
    assert "paribus report" not in capsys.readouterr().out


def test_a_command_that_wants_less_than_scores_ends_without_them(
    run: PreparedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", *OVERRIDES, *WORDS, "until=training"]) == 0
    assert "with three seeds" not in capsys.readouterr().out


def test_a_run_that_no_seed_makes_another_ends_with_its_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("texts.txt").write_text("some text", encoding="utf-8")
    fixed = ("seeds.weights=1", "seeds.order=1", "seeds.contexts=1")
    finished_sweep(tmp_path / "made", *fixed)
    assert main(["run", *OVERRIDES, *fixed]) == 0
    *_, last = capsys.readouterr().out.splitlines()
    assert shlex.split(last) == ["paribus", "report", *OVERRIDES, *fixed]


@pytest.fixture
def resumed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets every run count as one that goes on with the optimizer of another."""
    start = CheckpointStart(run="0123456789abcdef", optimizer="resumed")
    monkeypatch.setattr("paribus.commands.further.more_seeds.resuming", lambda config: start)


@pytest.mark.usefixtures("resumed")
def test_a_resumed_run_has_one_seed_and_ends_with_what_takes_several(
    run: PreparedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", *OVERRIDES, *WORDS]) == 0
    *_, why, given = capsys.readouterr().out.splitlines()
    assert why.startswith("for a spread: start.optimizer=resumed goes on with a training of one seed; start=continued ")
    assert main(shlex.split(given)[1:]) == 0
    assert capsys.readouterr().out.startswith("start=continued\n")


@pytest.mark.parametrize(("seed", "seeds"), [(0, "0,1,2"), (2, "0,1,2"), (7, "0,1,7")])
def test_three_seeds_have_that_of_the_run(seed: int, seeds: str) -> None:
    assert with_three_seeds(parse([f"seed={seed}"], "run"), seed) == f"paribus run -m seed={seeds}"
