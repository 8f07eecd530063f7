"""Services of trackers that were here before, and who serves their requests."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from paribus.config.groups.execution import TrackingConfig
from paribus.store.claims import this_process
from paribus.tracking import destination as destinations
from paribus.tracking.destination import Destination
from paribus.tracking.mlflow import locked
from paribus.tracking.sync import requests, take_over

EARLIER = {**this_process(), "machine": "another-boot pid:[4026531836]"}


def test_a_container_has_a_tracking_service_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A service in another PID namespace would judge the processes of this one by numbers that mean others there."""
    destination = Destination.resolve(TrackingConfig(), tmp_path)
    here = destination.service_directory
    monkeypatch.setattr(destinations, "machine", lambda: f"the same boot pid:[{os.getpid()}]")
    assert destination.service_directory != here
    assert destination.service_directory.parent == here.parent


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
