"""A sweep of more seeds says so where a report has judged fewer of its trainings before."""

from pathlib import Path

import pytest

from paribus.checks import compose_command
from paribus.cli import main
from paribus.config.arguments import parse
from paribus.pipeline.prepare import prepare
from support.finished_runs import finish

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
    for number, run in enumerate(prepare(compose_command(parse(["-m", *arms, "seed=0,1,2,3"])))):
        finish(run, number, tmp_path / "made")
    said = []
    for seeds in ("0,1", "0,1,2", "0,1,2,3", "0,1,2"):
        assert main(["run", "-m", *arms, f"seed={seeds}"]) == 0
        said.append(" ".join(capsys.readouterr().out.split()))
    assert [LOOKED in text for text in said] == [False, False, True, False]
    assert f"{LOOKED}encoder " in said[2] and "(3 seeds). If seeds were added because of what it showed" in said[2]
