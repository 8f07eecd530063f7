"""MLflow in processes of its own: live, down, hanging, killed; and runs that ended without saying so."""

import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from paribus.config.groups.execution import TrackingConfig
from paribus.store.claims import acquire, run_claim, this_process
from paribus.store.files import read_object_if_any
from paribus.tracking.destination import Destination
from paribus.tracking.events import EventLog, EventReader
from paribus.tracking.mlflow import cursor_path, is_delivered
from paribus.tracking.sync import Follower, close_abandoned, finish_all, sync
from support.tracking_runs import steps_shown, write_run
from support.waiting import wait_until

TRACKING = TrackingConfig(kind="mlflow")
DOWN = TrackingConfig(kind="mlflow", uri="http://user:secret@localhost:1")
STEPS = list(range(50))


@pytest.fixture(name="root")
def _root(tmp_path: Path, empty_store: Path) -> Path:
    """An output root with an empty store."""
    shutil.copy(empty_store, tmp_path)
    return tmp_path


def start_sync(root: Path) -> subprocess.Popen[str]:
    code = "import sys; from paribus.tracking.sync import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, f"root={root}"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_sync_killed_halfway_is_completed_by_the_next(root: Path) -> None:
    directory = write_run(root, "one", steps=6_000)
    destination = Destination.resolve(TRACKING, root)
    process = start_sync(root)
    wait_until(lambda: "offset" in read_object_if_any(cursor_path(directory, destination)), process)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert not is_delivered(directory, destination)
    assert not any(run.failed for run in sync(root, vars(TRACKING)))
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
            wait_until(lambda directory=directory: is_delivered(directory, destination))
            log.metric("loss", 1.0, 1)
            log.end("FINISHED")
        assert follower.finish(60) == f"in MLflow at sqlite:///{tmp_path}/mlflow.db, experiment 'paribus'"
        pids.add(read_object_if_any(destination.service_directory / "state.json")["pid"])
    assert len(pids) == 1
    assert steps_shown(destination.uri) == {"one": [0, 1], "two": [0, 1]}
    assert list(destination.service_directory.glob("*.request")) == []


def test_a_server_that_is_down_is_named_in_time_and_sync_sends_the_rest(root: Path) -> None:
    follower = Follower(root / "runs" / "one", DOWN, root)
    write_run(root, "one")
    begin = time.monotonic()
    message = follower.finish(20)
    assert time.monotonic() - begin < 20
    assert "Connection refused" in message
    assert f"paribus sync root={root}" in message
    assert "secret" not in message
    assert any(run.failed for run in sync(root, vars(DOWN)))
    assert sum(run.events.total() for run in sync(root, vars(TRACKING))) == 53
    assert steps_shown(f"sqlite:///{root}/mlflow.db") == {"one": STEPS}


def test_events_that_a_server_missed_are_sent_at_the_end_or_named(root: Path) -> None:
    names = ("one", "two", "three")
    directories = [write_run(root, name) for name in names]
    assert finish_all(directories[:1], TRACKING, root) is None
    assert finish_all(directories, DOWN, root) == (
        "MLflow at http://localhost:1 lacks a part of 3 of 3: one, two, three; "
        f"`paribus sync root={root}` sends the rest"
    )
    assert finish_all(directories, TRACKING, root) is None
    assert steps_shown(f"sqlite:///{root}/mlflow.db") == dict.fromkeys(names, STEPS)


def test_a_follower_whose_process_was_killed_starts_another(root: Path) -> None:
    destination = Destination.resolve(TRACKING, root)
    follower = Follower(root / "runs" / "one", TRACKING, root)
    state = destination.service_directory / "state.json"
    write_run(root, "one")
    wait_until(lambda: "pid" in read_object_if_any(state))
    os.kill(read_object_if_any(state)["pid"], signal.SIGKILL)
    assert follower.finish(60).startswith("in MLflow at")
    assert steps_shown(destination.uri) == {"one": STEPS}


def test_a_server_that_never_answers_costs_patience_once(tmp_path: Path) -> None:
    with closing(socket.create_server(("localhost", 0))) as server:
        tracking = TrackingConfig(kind="mlflow", uri=f"http://localhost:{server.getsockname()[1]}")
        for name in ("one", "two"):
            follower = Follower(tmp_path / "runs" / name, tracking, tmp_path)
            write_run(tmp_path, name)
            begin = time.monotonic()
            assert "no answer" in follower.finish(4)
            assert time.monotonic() - begin < 5.5


RUNNING = """
import sys, time
from pathlib import Path
from paribus.store.claims import acquire, run_claim
from paribus.tracking.events import EventLog

root = Path(sys.argv[1])
directory = root / "runs" / "one"
with acquire(run_claim(root, "one"), 30.0), EventLog(directory / "events.jsonl") as log:
    log.start("one", "one", {"id": "sweep"}, {})
    log.metric("loss", 1.0, 0)
    print("running", flush=True)
    time.sleep(600)
"""


def running(root: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", RUNNING, str(root)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "running\n"
    return process


def statuses(database: Path) -> dict[str, str]:
    """Status by name of the run, as MLflow keeps it."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        return dict(connection.execute("SELECT name, status FROM runs"))


def events(root: Path) -> list[dict[str, object]]:
    lines = (root / "runs/one/events.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_sync_ends_a_run_that_nobody_has_in_hand_and_no_other(tmp_path: Path, empty_store: Path) -> None:
    shutil.copy(empty_store, tmp_path)
    process = running(tmp_path)
    tracking = TrackingConfig(kind="mlflow")
    assert not any(run.failed for run in sync(tmp_path, vars(tracking)))
    assert statuses(tmp_path / "mlflow.db")["one"] == "RUNNING"
    process.kill()
    process.wait()
    assert not any(run.failed for run in sync(tmp_path, vars(tracking)))
    assert statuses(tmp_path / "mlflow.db")["one"] == "FAILED"


def test_a_run_that_ended_or_is_taken_up_by_another_process_is_left_as_it_is(tmp_path: Path) -> None:
    directory = tmp_path / "runs" / "one"
    with EventLog(directory / "events.jsonl") as log:
        log.start("one", "one", None, {})
        held = acquire(run_claim(tmp_path, "one"), 30.0)
        assert held is not None
        with held:
            assert not close_abandoned(directory, tmp_path)
        log.end("FINISHED")
    assert not close_abandoned(directory, tmp_path)
    assert [event["event"] for event in events(tmp_path)] == ["start", "end"]


def last_beat(claim: Path, ago: float) -> None:
    """Have the last heartbeat of a claim be so many seconds ago, or to come."""
    os.utime(claim, (time.time() - ago,) * 2)


def test_a_run_that_a_reboot_ended_is_shown_as_failed_by_the_next_service(tmp_path: Path, empty_store: Path) -> None:
    """After a reboot no process id shows that the holder is dead, so its claim ends with its lease."""
    shutil.copy(empty_store, tmp_path)
    with EventLog(tmp_path / "runs/one/events.jsonl") as log:
        log.start("one", "one", {"id": "sweep"}, {})
    earlier = {**this_process(), "machine": "another-boot pid:[4026531836]"}
    (tmp_path / "claims").mkdir()
    claim = run_claim(tmp_path, "one")
    claim.write_text(json.dumps({"token": "t", "lease": 60.0, **earlier}), encoding="utf-8")
    last_beat(claim, ago=-600)
    own = Destination.resolve(TrackingConfig(kind="mlflow"), tmp_path).service_directory
    left = own.with_name(own.name.rpartition("-")[0] + "-00000000")
    left.mkdir(parents=True)
    request = {"run_directory": str(tmp_path / "runs/one"), "process": earlier, "finishing": False}
    (left / "one.4711.request").write_text(json.dumps(request), encoding="utf-8")
    follower = Follower(write_run(tmp_path, "two"), TrackingConfig(kind="mlflow"), tmp_path)
    wait_until(lambda: list(own.glob("two.*.answer")), seconds=90)
    assert statuses(tmp_path / "mlflow.db")["one"] == "RUNNING"
    last_beat(claim, ago=61)
    # To finish asks for a round of the service at once, which has "one" in it too.
    assert follower.finish(60).startswith("in MLflow at")
    assert statuses(tmp_path / "mlflow.db")["one"] == "FAILED"
    assert not left.exists()
    assert not claim.exists()


def test_a_run_that_was_to_stop_before_its_end_is_no_failure(tmp_path: Path) -> None:
    directory = tmp_path / "runs" / "one"
    with EventLog(directory / "events.jsonl") as log:
        log.start("one", "one", None, {})
    (directory / "run.json").write_text('{"status": "stopped", "until": "order"}', encoding="utf-8")
    assert close_abandoned(directory, tmp_path)
    assert EventReader(directory / "events.jsonl").poll()[-1].fields["status"] == "SCHEDULED"
