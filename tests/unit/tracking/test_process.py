"""Which processes are gone, as far as that can be known from here, and who serves their requests."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from paribus.config.groups.execution import TrackingConfig
from paribus.store.claims import is_gone, is_of_another_boot, machine, this_process
from paribus.tracking import destination as destinations
from paribus.tracking.destination import Destination
from paribus.tracking.mlflow import locked
from paribus.tracking.sync import requests, take_over


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


EARLIER = {**this_process(), "machine": "another-boot pid:[4026531836]"}
OTHER_NAMESPACE = {**this_process(), "machine": f"{machine().split()[0]} pid:[1]"}


@pytest.fixture
def destination(tmp_path: Path) -> Destination:
    found = Destination.resolve(TrackingConfig(), tmp_path)
    found.service_directory.mkdir(parents=True)
    return found


def sibling(destination: Destination, name: str | None = None) -> Path:
    """The directory of a service of another boot or PID namespace."""
    own = destination.service_directory
    directory = own.with_name(name or own.name.rpartition("-")[0] + "-00000000")
    directory.mkdir()
    (directory / "service.log").touch()
    return directory


def ask(directory: Path, process: dict[str, Any], run: str = "one") -> Path:
    path = directory / f"{run}.4711.request"
    path.write_text(json.dumps({"run_directory": f"/runs/{run}", "process": process, "finishing": False}))
    path.with_suffix(".answer").write_text("{}")
    return path


def test_requests_of_an_earlier_boot_are_taken_over_and_their_directory_goes(destination: Destination) -> None:
    left = ask(sibling(destination), EARLIER)
    take_over(destination)
    (found,) = requests(destination.service_directory)
    assert (found.path.name, found.run_directory, found.abandoned) == (left.name, Path("/runs/one"), True)
    assert not left.parent.exists()


def test_what_a_service_at_work_another_host_or_another_tracker_has_is_left(destination: Destination) -> None:
    served = ask(sibling(destination), EARLIER)
    elsewhere = ask(sibling(destination, f"{destination.key}-elsewhere-00000000"), EARLIER)
    other = ask(sibling(destination, destination.service_directory.name.replace(destination.key, "0" * 12)), EARLIER)
    with locked(served.parent / "service.lock", 0):
        take_over(destination)
    assert [path.exists() for path in (served, elsewhere, other)] == [True] * 3
    assert list(requests(destination.service_directory)) == []


def test_a_process_is_of_another_boot_only_where_that_is_known() -> None:
    assert is_of_another_boot(EARLIER)
    assert not any(map(is_of_another_boot, (this_process(), OTHER_NAMESPACE, {**EARLIER, "host": "elsewhere"}, {})))
