"""Which processes are gone, as far as that can be known from here."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from paribus.config.groups.execution import TrackingConfig
from paribus.store.process import is_gone, this_process
from paribus.tracking import destination as destinations
from paribus.tracking.destination import Destination


def test_a_process_is_there_until_it_ends_and_its_number_in_other_hands_is_not_it() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    ours = this_process()
    theirs = {**ours, "pid": child.pid, "started": float(_started(child.pid))}
    assert not is_gone(ours)
    assert not is_gone(theirs)
    assert is_gone({**ours, "started": 1.0})
    child.communicate(b"\n")
    assert is_gone(theirs)


def _started(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[19]


def test_nothing_is_known_of_a_process_in_another_container_or_on_another_host() -> None:
    assert not is_gone({**this_process(), "machine": "another boot pid:[1]", "pid": 2**22 + 1})
    assert not is_gone({})


def test_a_container_has_a_tracking_service_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A service in another PID namespace would judge the processes of this one by numbers that mean others there."""
    destination = Destination.resolve(TrackingConfig(), tmp_path)
    here = destination.service_directory
    monkeypatch.setattr(destinations, "machine", lambda: f"the same boot pid:[{os.getpid()}]")
    assert destination.service_directory != here
    assert destination.service_directory.parent == here.parent
