"""A report that fails in a way that nobody foresaw: a line, a traceback in a file, and runs that stay done."""

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from paribus.checks import compose_command
from paribus.cli import main
from paribus.commands import report
from paribus.commands import run as sweep
from paribus.config.arguments import parse
from paribus.pipeline.prepare import prepare
from paribus.pipeline.root import RUN_ID_LENGTH

SWEEP = ["-m", "scale=tiny", "corpus=pydocs_small", "tracking=none", "tokenizer=bpe,bytes"]


@pytest.fixture(autouse=True)
def _broken(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> None:
        raise KeyError("a field that\nis not there")

    monkeypatch.setattr(report, "collect", fails)


def log_of(root: Path) -> Path:
    (found,) = root.glob("sweeps/*/report.log")
    return found


@pytest.mark.parametrize("why", [(), ("--why",)])
def test_the_verb_says_it_in_a_line_and_where_the_traceback_is(
    why: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", *SWEEP, f"root={tmp_path}", *why]) == 1
    said = capsys.readouterr().err
    assert said.startswith("paribus report: KeyError:") and len(said.splitlines()) == 1
    assert str(log_of(tmp_path)) in said
    assert log_of(tmp_path).read_text(encoding="utf-8").startswith("Traceback")


def test_a_sweep_whose_runs_are_done_stays_a_success(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "is_made", lambda *_: True)
    shown = io.StringIO()
    assert sweep.run_command(parse([*SWEEP, f"root={tmp_path}"]), Console(file=shown, width=200)) == 0
    done, *runs, failure = shown.getvalue().splitlines()
    assert done == "2 of 2 runs done already"
    assert [line.split()[1:] for line in runs] == [["bpe"], ["bytes"]]
    assert all(len(line.split()[0]) == RUN_ID_LENGTH for line in runs)
    assert failure.startswith("no table: KeyError:") and str(log_of(tmp_path)) in failure


def test_a_log_that_cannot_be_written_is_no_second_failure(tmp_path: Path) -> None:
    composition = compose_command(parse([*SWEEP, f"root={tmp_path}"]))
    (tmp_path / "sweeps").write_text("no directory", encoding="utf-8")
    shown = io.StringIO()
    report.show_table(composition, prepare(composition), Console(file=shown, width=200))
    assert "no table:" in shown.getvalue()
    assert "its traceback could not be written" in shown.getvalue()
