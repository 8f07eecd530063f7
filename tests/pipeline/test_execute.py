"""The process of a stage: forked with its imports or begun on its own, and whatever is killed."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from paribus.engine.processes import OOM_SCORE
from paribus.errors import FullDiskError, InfrastructureError, NumericalError, OutOfMemoryError
from paribus.pipeline import execute
from paribus.pipeline.execute import Child, Job, _conclude, start_child
from paribus.store.provenance import Code, loaded_code

STAND_IN = """
import json, os, signal, sys, time
from paribus.pipeline import fork_server

def serve(job, channel):
    asked = signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    reported = {"pid": os.getpid(), "session": os.getsid(0), "directory": os.getcwd(), "default_sigterm": asked}
    reported |= {"variable": os.environ.get("VARIABLE"), "visible": os.environ.get("VISIBLE")}
    with open("/proc/self/oom_score_adj") as score:
        reported |= {"oom_score": int(score.read())}
    print("in the log", file=sys.stderr)
    os.write(channel, json.dumps(reported).encode())
    os.close(channel)
    time.sleep(job["seconds"])
    return job["exit_status"]

fork_server.run_job = serve
"""
"""Takes the place of a stage in the server that imports it."""


@pytest.fixture
def begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., tuple[Child, dict[str, Any]]]]:
    """Begins a child, which says what it finds about itself."""
    (tmp_path / "stand_in.py").write_text(STAND_IN, encoding="utf-8")
    environment = {**os.environ, "VARIABLE": "one", "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    monkeypatch.chdir(tmp_path)

    def begun(seconds: float = 0.0, exit_status: int = 0, code: Code | None = None) -> tuple[Child, dict[str, Any]]:
        fields = {"seconds": seconds, "exit_status": exit_status, "code": vars(code or loaded_code())}
        reading, writing = os.pipe()
        with os.fdopen(reading, "rb") as channel, (tmp_path / "log").open("ab") as log:
            try:
                streams = writing, log.fileno()
                child = start_child(Job(fields, environment, {"VISIBLE": "0"}, streams, ["stand_in"]), lambda: None)
            finally:
                os.close(writing)
            return child, json.loads(channel.read() or b"{}")

    execute._server.cache_clear()
    yield begun
    execute._server.cache_clear()


def alive(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def gone(pid: int) -> bool:
    """Whether a process ends within some seconds."""
    until = time.monotonic() + 10
    while alive(pid) and time.monotonic() < until:
        time.sleep(0.02)
    return not alive(pid)


def server_of(child: Child) -> int:
    return int(child.server.process.pid)  # type: ignore[attr-defined]


def test_a_child_has_its_own_session_environment_and_signals(begin: Any, tmp_path: Path) -> None:
    child, reported = begin(exit_status=3)
    assert reported["pid"] == reported["session"] == child.pid
    assert reported["directory"] == str(tmp_path)
    assert (reported["variable"], reported["visible"], reported["default_sigterm"]) == ("one", "0", True)
    assert child.wait() == child.wait() == child.poll() == 3
    assert reported["oom_score"] > int(OOM_SCORE.read_text())
    assert "in the log" in (tmp_path / "log").read_text(encoding="utf-8")


def test_a_child_that_is_killed_says_so_and_the_server_goes_on(begin: Any) -> None:
    child, _ = begin(seconds=60)
    os.killpg(child.pid, signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL
    second, _ = begin(exit_status=1)
    assert server_of(child) == server_of(second)
    assert second.wait() == 1


def test_the_fork_server_survives_signals_to_the_whole_job(begin: Any) -> None:
    child, _ = begin(seconds=0.5)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        os.kill(server_of(child), number)
    assert child.wait() == 0


def test_a_child_ends_with_its_server_and_the_next_begins_all_the_same(begin: Any) -> None:
    child, _ = begin(seconds=60)
    os.kill(server_of(child), signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL
    assert gone(child.pid)
    # On its own, where no stand-in takes the place of a stage: it says that there is no such job.
    second, reported = begin()
    assert (second.wait(), reported["type"]) == (1, "failed")
    third, reported = begin(exit_status=5)
    assert third.wait() == 5


def test_a_server_whose_code_is_not_that_of_the_command_forks_nothing(begin: Any) -> None:
    other = Code({**loaded_code().files, "ordering/arrays.py": "another"}, loaded_code().packages)
    child, reported = begin(code=other)
    assert isinstance(child, subprocess.Popen)
    assert (child.wait(), reported["type"]) == (1, "failed")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends processes with their parents")
def test_server_and_child_end_with_the_process_that_started_them(begin: Any, tmp_path: Path) -> None:
    script = (
        "import os, sys\n"
        "from paribus.pipeline.execute import Job, start_child\n"
        "from paribus.store.provenance import loaded_code\n"
        "fields = {'seconds': 60, 'exit_status': 0, 'code': vars(loaded_code())}\n"
        "reading, writing = os.pipe()\n"
        "child = start_child(Job(fields, dict(os.environ), {}, (writing, 2), ['stand_in']), lambda: None)\n"
        "print(child.server.process.pid, child.pid, flush=True)\n"
        "child.wait()\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    asking = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, env=environment, text=True)
    assert asking.stdout is not None
    numbers = [int(number) for number in asking.stdout.readline().split()]
    assert all(map(alive, numbers))
    asking.kill()
    asking.communicate()
    assert all(map(gone, numbers))


LOG = Path("stage.log")


def test_a_run_is_interrupted_where_the_whole_job_is_stopped() -> None:
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            _conclude(None, -signal.SIGTERM, LOG, memory_kills=0)
    finally:
        signal.signal(signal.SIGINT, before)


def test_signal_nine_is_want_of_memory_only_where_the_kernel_counted_it() -> None:
    with pytest.raises(OutOfMemoryError):
        _conclude(None, -signal.SIGKILL, LOG, memory_kills=1)
    with pytest.raises(InfrastructureError, match="SIGKILL"):
        _conclude(None, -signal.SIGKILL, LOG, memory_kills=0)


def test_the_error_that_a_process_reported_comes_before_its_signal() -> None:
    said = {"type": "failed", "class": "numerical", "message": "the loss is NaN", "full_disk": False}
    with pytest.raises(NumericalError, match="the loss is NaN"):
        _conclude(said, -signal.SIGKILL, LOG, memory_kills=1)
    with pytest.raises(FullDiskError, match="the disk is full"):
        _conclude(said | {"class": "infrastructure", "message": "the disk is full", "full_disk": True}, 1, LOG, 0)
