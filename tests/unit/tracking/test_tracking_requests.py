"""Requests of processes that a reboot has ended: who serves them, and which are left alone."""

import json
from pathlib import Path
from typing import Any

import pytest

from paribus.config.groups.execution import TrackingConfig
from paribus.store.process import is_of_another_boot, machine, this_process
from paribus.tracking.destination import Destination
from paribus.tracking.locks import locked
from paribus.tracking.requests import requests, take_over

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
