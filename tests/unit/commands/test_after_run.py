"""A run that was given alone ends with its scores and the command of its report."""

import shlex
from pathlib import Path

import pytest

from paribus.cli import main
from paribus.pipeline.root import OutputRoot
from paribus.store.artifacts import read_record, write_record
from support.recorded_sweeps import OVERRIDES, finished_sweep

pytestmark = pytest.mark.usefixtures("undrawn")


def test_scores_come_before_the_command_of_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("texts.txt").write_text("some text", encoding="utf-8")
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
