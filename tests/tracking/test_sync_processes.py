"""MLflow in processes of its own: live, down, hanging, killed, several at once."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from paribus.config.groups.execution import TrackingConfig
from paribus.store.files import read_object_if_any
from paribus.tracking.destination import Destination
from paribus.tracking.events import EventLog
from paribus.tracking.mlflow import cursor_path, is_delivered
from paribus.tracking.sync import Follower, finish_all, sync
from support.tracking_runs import steps_shown, write_run

TRACKING = TrackingConfig(kind="mlflow")


def start_sync(root: Path, *options: str) -> subprocess.Popen[str]:
    code = "import sys; from paribus.tracking.sync import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, f"root={root}", *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_four_syncs_at_once_create_the_store_and_leave_each_event_once(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_run(tmp_path, name)
    processes = [start_sync(tmp_path, "tracking.patience=60") for _ in range(4)]
    outputs = [process.communicate() for process in processes]
    assert [process.returncode for process in processes] == [0] * 4, outputs
    assert steps_shown(f"sqlite:///{tmp_path}/mlflow.db") == {name: list(range(50)) for name in ("one", "two")}


def test_a_sync_killed_halfway_is_completed_by_the_next(tmp_path: Path, empty_store: Path) -> None:
    shutil.copy(empty_store, tmp_path)
    directory = write_run(tmp_path, "one", steps=6_000)
    destination = Destination.resolve(TRACKING, tmp_path)
    process = start_sync(tmp_path)
    while "offset" not in read_object_if_any(cursor_path(directory, destination)):
        assert process.poll() is None
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert not is_delivered(directory, destination)
    assert not any(run.failed for run in sync(tmp_path, vars(TRACKING)))
    assert steps_shown(destination.uri) == {"one": list(range(6_000))}


def test_runs_one_after_another_are_followed_live_by_one_process(tmp_path: Path) -> None:
    destination = Destination.resolve(TRACKING, tmp_path)
    pids = set()
    for name in ("one", "two"):
        directory = tmp_path / "runs" / name
        with EventLog(directory / "events.jsonl") as log:
            log.start(name, name, {"id": "sweep"}, {})
            begin = time.monotonic()
            follower = Follower(directory, TRACKING, tmp_path)
            assert time.monotonic() - begin < 0.5
            log.metric("loss", 0.0, 0)
            while not is_delivered(directory, destination):
                assert time.monotonic() - begin < 60
                time.sleep(0.05)
            log.metric("loss", 1.0, 1)
            log.end("FINISHED")
        assert follower.finish(60) == f"in MLflow at sqlite:///{tmp_path}/mlflow.db, experiment 'paribus'"
        pids.add(read_object_if_any(destination.service_directory / "state.json")["pid"])
    assert len(pids) == 1
    assert steps_shown(destination.uri) == {"one": [0, 1], "two": [0, 1]}
    assert list(destination.service_directory.glob("*.request")) == []


def test_a_server_that_is_down_is_told_in_time_and_sync_sends_the_rest(tmp_path: Path, empty_store: Path) -> None:
    shutil.copy(empty_store, tmp_path)
    tracking = TrackingConfig(kind="mlflow", uri="http://user:secret@localhost:1")
    follower = Follower(tmp_path / "runs" / "one", tracking, tmp_path)
    write_run(tmp_path, "one")
    begin = time.monotonic()
    message = follower.finish(20)
    assert time.monotonic() - begin < 20
    assert "Connection refused" in message
    assert f"paribus sync root={tmp_path}" in message
    assert "secret" not in message
    assert any(run.failed for run in sync(tmp_path, vars(tracking)))
    assert sum(run.events.total() for run in sync(tmp_path, vars(TRACKING))) == 53
    assert steps_shown(f"sqlite:///{tmp_path}/mlflow.db") == {"one": list(range(50))}


def test_what_a_server_missed_while_it_was_down_is_sent_at_the_end_or_named(tmp_path: Path, empty_store: Path) -> None:
    shutil.copy(empty_store, tmp_path)
    directories = [write_run(tmp_path, name) for name in ("one", "two", "three")]
    assert finish_all(directories[:1], TRACKING, tmp_path) is None
    down = TrackingConfig(kind="mlflow", uri="http://user:secret@localhost:1")
    assert finish_all(directories, down, tmp_path) == (
        "MLflow at http://localhost:1 lacks a part of 3 of 3: one, two, three; "
        f"`paribus sync root={tmp_path}` sends the rest"
    )
    assert finish_all(directories, TRACKING, tmp_path) is None
    assert steps_shown(f"sqlite:///{tmp_path}/mlflow.db") == {name: list(range(50)) for name in ("one", "two", "three")}


def test_a_server_that_never_answers_costs_patience_once(tmp_path: Path) -> None:
    with closing(socket.create_server(("localhost", 0))) as server:
        tracking = TrackingConfig(kind="mlflow", uri=f"http://localhost:{server.getsockname()[1]}")
        for name, limit in (("one", 5.5), ("two", 5.5)):
            follower = Follower(tmp_path / "runs" / name, tracking, tmp_path)
            write_run(tmp_path, name)
            begin = time.monotonic()
            assert "no answer" in follower.finish(4)
            assert time.monotonic() - begin < limit


def test_a_follower_whose_process_was_killed_starts_another(tmp_path: Path, empty_store: Path) -> None:
    shutil.copy(empty_store, tmp_path)
    destination = Destination.resolve(TRACKING, tmp_path)
    follower = Follower(tmp_path / "runs" / "one", TRACKING, tmp_path)
    state = destination.service_directory / "state.json"
    write_run(tmp_path, "one")
    while "pid" not in read_object_if_any(state):
        time.sleep(0.02)
    os.kill(read_object_if_any(state)["pid"], signal.SIGKILL)
    assert follower.finish(60).startswith("in MLflow at")
    assert steps_shown(destination.uri) == {"one": list(range(50))}
