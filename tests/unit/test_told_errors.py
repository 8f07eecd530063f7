"""What the log of a process keeps of how it ended."""

import sys
from pathlib import Path

import pytest

from paribus.errors import DataError, InterruptedRunError, told_in_log
from paribus.training.processes import member
from paribus.training.processes.group import AGENT


def test_a_stop_is_a_line_and_all_else_a_traceback() -> None:
    told = "stopped by a signal after step 3, whose checkpoint is written"
    assert told_in_log(InterruptedRunError(told)) == f"interrupted: {told}\n"
    assert "DataError: a line is torn" in told_in_log(DataError("a line is torn"))


def test_a_stop_of_a_group_is_a_line_whatever_its_agent_says_of_its_processes() -> None:
    try:
        try:
            raise RuntimeError("exit code 1")
        except RuntimeError as error:
            raise InterruptedRunError("stopped") from error
    except InterruptedRunError as error:
        assert told_in_log(error) == "interrupted: stopped\n"


def test_a_stop_while_something_else_went_wrong_hides_nothing_of_it() -> None:
    try:
        try:
            raise ValueError("the loss is not finite")
        finally:
            raise InterruptedRunError("stopped by a signal")
    except InterruptedRunError as error:
        told = told_in_log(error)
    assert "ValueError: the loss is not finite" in told and "InterruptedRunError: stopped by a signal" in told


@pytest.mark.parametrize("alone", [True, False])
def test_a_process_of_a_group_keeps_the_traceback_of_what_a_stop_interrupted(
    alone: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def work(*_: object, **named: object) -> None:
        try:
            if not alone:
                raise ValueError("the loss is not finite")
        finally:
            raise InterruptedRunError("stopped by a signal")

    ended: list[int] = []
    for name, found in {"_carry_out": work, "die_with_parent": ended.append, "ignore_requests": lambda: None}.items():
        monkeypatch.setattr(member, name, found)
    monkeypatch.setattr(member.os, "_exit", ended.append)
    monkeypatch.setattr(sys, "argv", ["member", str(tmp_path), str(tmp_path / "requests")])
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv(AGENT, "7")
    member.run_member(lambda *_: {})
    assert ended == [7, 1]
    assert ("ValueError: the loss is not finite" in capsys.readouterr().err) is not alone
