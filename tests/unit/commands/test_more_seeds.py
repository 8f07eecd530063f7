"""A null experiment of too few runs names the command that makes enough."""

import shlex
from pathlib import Path

import pytest

from paribus.checks.command import compose_command
from paribus.cli import main
from paribus.commands.further.more_seeds import with_more_seeds
from paribus.config.arguments import parse
from paribus.pipeline.prepare import prepare
from support.finished_runs import finish

TEN = "seed=0,1,2,3,4,5,6,7,8,9"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["tokenizer=bpe", "seed=3"], f"paribus run -m tokenizer=bpe {TEN}"),
        (["-m", "seed=12,0", "encoder=merge_rank"], f"paribus run -m encoder=merge_rank {TEN},12"),
        (
            ["experiment=demo", "training.gradient_clip=0.5"],
            f"paribus run -m experiment=demo training.gradient_clip=0.5 {TEN}",
        ),
        (
            ["--config-dir", "conf", "evaluation.shots=[0, 5]"],
            f"paribus run -m --config-dir conf 'evaluation.shots=[0, 5]' {TEN}",
        ),
    ],
)
def test_the_command_has_the_same_arms_and_ten_seeds(given: list[str], told: str) -> None:
    command = parse(given, "report")
    written = with_more_seeds(command, compose_command(command))
    assert written == told
    again = compose_command(parse(shlex.split(written)[2:]))
    assert {job.config.seed for job in again.jobs} >= set(range(10))


def test_too_few_runs_are_refused_with_that_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arms = ["scale=tiny", "corpus=pydocs_small", "tokenizer=bpe", f"root={tmp_path / 'root'}"]
    finish(prepare(compose_command(parse(["-m", *arms, "seed=0,1"])))[0], 0, tmp_path / "made")
    assert main(["report", "--null", "-m", *arms, "seed=0,1"]) == 2
    *_, reason, last = capsys.readouterr().err.splitlines()
    assert "needs 6 finished runs of one arm, 3 for each half, and there are 1; run more seeds" in reason
    assert last == f"  {shlex.join(['paribus', 'run', '-m', *arms, TEN])}"
