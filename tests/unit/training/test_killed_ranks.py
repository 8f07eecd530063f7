"""What a training that lost a process to signal 9 is said to have failed of."""

import errno
import sys
from pathlib import Path

import pytest

from paribus.errors import FullDiskError, InfrastructureError, NumericalError, OutOfMemoryError
from paribus.training import launch
from paribus.training.distributed import report_failure
from paribus.training.launch import _failure

KILLED = {1: -9}


def test_a_process_is_out_of_memory_only_where_the_kernel_counted_such_a_kill(tmp_path: Path) -> None:
    assert isinstance(_failure(tmp_path, KILLED, memory_kills=1), OutOfMemoryError)
    outside = _failure(tmp_path, KILLED, memory_kills=0)
    assert isinstance(outside, InfrastructureError)
    assert "process 1 was killed from outside (signal 9)" in str(outside)


def test_what_another_process_explained_comes_first(tmp_path: Path) -> None:
    report_failure(tmp_path, "process 0", NumericalError("the loss is NaN"))
    assert isinstance(_failure(tmp_path, KILLED, memory_kills=1), NumericalError)


def test_a_rank_that_found_the_disk_full_is_not_taken_for_a_passing_trouble(tmp_path: Path) -> None:
    report_failure(tmp_path, "process 0", OSError(errno.ENOSPC, "No space left on device", "/root/step_100"))
    assert isinstance(_failure(tmp_path, {0: 1}), FullDiskError)


def test_an_agent_that_fails_before_its_processes_begin_says_of_what(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run_node(*_: object) -> None:
        raise RuntimeError("the port is taken")

    for name in ("die_with_parent", "ignore_requests"):
        monkeypatch.setattr(launch, name, lambda: None)
    monkeypatch.setattr(launch, "run_node", run_node)
    monkeypatch.setattr(sys, "argv", ["launch", str(tmp_path), "3"])
    assert launch.main() == 1
    assert str(_failure(tmp_path, {})) == "RuntimeError: the port is taken (the agent of node 3)"
