"""A sweep in two allocations: one makes all before training under a launcher, another the rest."""

import json
from collections import Counter
from pathlib import Path

import pytest

from support.command_line import OVERRIDES, paribus, write_corpus

ARMS = ("-m", *OVERRIDES, "encoder=merge_rank,longest_first")
UNTIL = "until=contexts"


def made(directory: Path) -> Counter[str]:
    return Counter(path.parent.parent.name for path in (directory / "paribus_runs/artifacts").glob("*/*/record.json"))


def records(directory: Path) -> set[tuple[str, str | None]]:
    paths = (directory / "paribus_runs/runs").glob("*/run.json")
    found = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    return {(record["status"], record["until"]) for record in found}


def said(directory: Path, *arguments: str, expect: int = 0) -> str:
    """What a command prints."""
    done = paribus(directory, *arguments, expect=expect)
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("until")
    write_corpus(path)
    return path


def test_a_sweep_stops_after_a_stage_and_another_command_makes_the_rest(directory: Path) -> None:
    launcher = ("hydra/launcher=joblib", "hydra.launcher.n_jobs=2")
    told = said(directory, "run", *ARMS, UNTIL, *launcher)
    assert "2 of 2 runs done up to contexts in" in told
    assert "2 of 2 stopped early, without tasks, prompts, training, evaluation; the rest is made by" in told
    assert "paribus run -m" in told and UNTIL not in told.partition("the rest is made by")[2]
    assert made(directory) == {"corpus": 1, "vocabulary": 1, "tokens": 2, "order": 1, "contexts": 2}
    assert records(directory) == {("stopped", "contexts")}
    assert "2 of 2 runs done up to contexts already" in said(directory, "run", *ARMS, UNTIL)
    assert "stopped after" in said(directory, "status", *ARMS, UNTIL)
    assert "stopped after" in said(directory, "status", *ARMS, expect=1)
    report = said(directory, "report", *ARMS, expect=2)
    assert "the rest is made by" in report and "stopped after contexts" in report
    said(directory, "run", *ARMS)
    assert records(directory) == {("done", None)}
    assert made(directory)["evaluation"] == made(directory)["training"] == 2
    assert "stopped" not in said(directory, "report", *ARMS)


def test_a_stage_that_there_is_not_is_refused_before_anything_runs(directory: Path) -> None:
    assert "until: 'contxts' is unknown; did you mean 'contexts'?" in said(
        directory, "run", *OVERRIDES, "until=contxts", expect=2
    )
    told = said(directory, "plan", *OVERRIDES, "until=neighbours", expect=2)
    assert "has no stage neighbours, only corpus, tasks, vocabulary" in told
    swept = said(directory, "run", "-m", *OVERRIDES, "until=corpus,tokens", expect=2)
    assert "until=corpus and until=tokens make the same run" in swept
