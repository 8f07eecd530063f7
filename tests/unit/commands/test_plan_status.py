"""The exit status of `paribus plan`, by which a job script knows whether `paribus run` would begin."""

import json
from pathlib import Path

import pytest

from paribus.cli import main

OWN = ("scale=tiny", "corpus=files", "tracking=none", "root=root")
HERE, ABSENT = "corpus.paths=[texts.txt]", "corpus.paths=[absent/*.jsonl]"
TWO_ARMS = ("-m", "ordering=standard,in_context")


@pytest.fixture(autouse=True)
def _text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("texts.txt").write_text("some text", encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        ((HERE,), 0, None),
        ((ABSENT,), 1, "paribus run could not begin: corpus.paths: absent/*.jsonl: the pattern matches no file"),
        ((HERE, "evaluation=papers", "evaluation.data=nowhere"), 1, "paribus run could not begin: "),
        ((HERE, "engine.workers=1", "training.device=cuda:999"), 1, "paribus run could not begin: training.device"),
        ((HERE, *TWO_ARMS), 1, "paribus run would refuse this: "),
        ((HERE, "budget=equal_text", "budget.text=1MB", "training.checkpoints=10000", "evaluation.last_checkpoints=2"),
         0, "paribus run may refuse bpe-merge_rank-standard-seed0"),
    ],
)  # fmt: skip
def test_a_plan_of_what_could_not_begin_is_whole_and_ends_with_status_1(
    words: tuple[str, ...], status: int, told: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", *OWN, *words]) == status
    printed = capsys.readouterr().out
    assert "still to train: " in printed
    assert ("paribus run " in printed) == (told is not None)
    assert told is None or told in printed


def test_a_document_ends_as_the_plan_does(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--json", *OWN, ABSENT]) == 1
    (problem,) = json.loads(capsys.readouterr().out)["problems"]
    assert "the pattern matches no file" in problem
