"""A report up to a stage before any training says which command makes the table of what is there then."""

import shlex
from pathlib import Path
from typing import get_args

import pytest

from paribus.cli import main
from paribus.commands.report import VERB_OF_STAGE
from paribus.config.groups.execution import RunStage
from support.recorded_sweeps import finished_sweep


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "texts.txt").write_text("some text", encoding="utf-8")
    monkeypatch.chdir(tmp_path)


WORDS = ("scale=tiny", "corpus=files", "corpus.paths=[texts.txt]", "tracking=none", "tokenizer=bpe,bytes")


@pytest.mark.parametrize(
    ("until", "verb"),
    [("vocabulary", "tokens statistics"), ("tokens", "tokens statistics"), ("order", "orders"), ("contexts", "orders")],
)
def test_without_a_run_that_is_done_the_verb_of_the_table_is_the_answer(
    until: str, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", "-m", *WORDS, f"until={until}"]) == 2
    (told,) = capsys.readouterr().err.splitlines()
    before, _, typed = told.partition("; the table of what is there then: ")
    assert before == f"paribus report: until={until} ends before the models that a report compares"
    assert shlex.split(typed) == ["paribus", *verb.split(), "-m", *WORDS]
    assert main([*verb.split(), "--cfg", "job", *WORDS[:4]]) == 0


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
def test_of_a_stage_of_models_the_report_itself_is_the_table(until: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "-m", *WORDS, f"until={until}"]) == 2
    assert "no finished run was found to report" in capsys.readouterr().err


def test_stages_with_such_a_table_are_stages_of_runs() -> None:
    assert VERB_OF_STAGE.keys() <= set(get_args(RunStage))
