"""Claims: who holds one, when it is taken over, and which processes count as dead."""

import errno
import json
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from paribus.checks import compose_command
from paribus.config.arguments import parse
from paribus.config.identity import to_plain
from paribus.pipeline.execute import RUN_STAGE
from paribus.store import claims
from paribus.store.artifacts import Store
from paribus.store.claims import (
    ClaimLostError,
    acquire,
    is_gone,
    is_held,
    is_of_another_boot,
    machine,
    read_holder,
    this_process,
)
from paribus.store.provenance import loaded_code
from support.waiting import wait_until

EARLIER = {**this_process(), "machine": "another-boot pid:[4026531836]"}
OTHER_NAMESPACE = {**this_process(), "machine": f"{machine().split()[0]} pid:[1]"}


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


def test_a_process_is_of_another_boot_only_where_that_is_known() -> None:
    assert is_of_another_boot(EARLIER)
    assert not any(map(is_of_another_boot, (this_process(), OTHER_NAMESPACE, {**EARLIER, "host": "elsewhere"}, {})))


KEY = "k" * 64


def make_once(root: str, made: str) -> None:
    """What a runner does: look, claim, look again, make, publish."""
    store = Store(Path(root), lease_seconds=5.0)
    while store.find("corpus", KEY) is None:
        held = store.claim("corpus", KEY)
        if held is None:
            time.sleep(0.01)
            continue
        with held:
            if store.find("corpus", KEY) is None:
                with Path(made).open("a", encoding="utf-8") as file:
                    file.write(f"{os.getpid()}\n")
                (store.empty_output(held, "corpus", KEY) / "data").write_text("content", encoding="utf-8")
                time.sleep(0.1)
                store.publish(held, "corpus", KEY, {"result": {}})


def test_exactly_one_of_six_processes_makes_the_artefact(tmp_path: Path) -> None:
    made = tmp_path / "made"
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=make_once, args=(str(tmp_path / "store"), str(made))) for _ in range(6)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert len(made.read_text(encoding="utf-8").splitlines()) == 1
    artifact = Store(tmp_path / "store").find("corpus", KEY)
    assert artifact is not None
    assert artifact.record()["files"]["data"]["bytes"] == 7


def holder_process(path: Path) -> subprocess.Popen[str]:
    code = (
        "import sys, time; from pathlib import Path; from paribus.store.claims import acquire\n"
        "held = acquire(Path(sys.argv[1]), 60.0)\n"
        "held.__enter__(); print('held', flush=True); time.sleep(600)"
    )
    child = subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "held\n"
    return child


def test_a_claim_of_a_killed_process_is_taken_over_at_once(tmp_path: Path) -> None:
    path = tmp_path / "claims" / "corpus-k"
    child = holder_process(path)
    assert acquire(path, 60.0) is None
    child.send_signal(signal.SIGKILL)
    child.wait()
    held = acquire(path, 60.0)
    assert held is not None
    assert held.held()


def test_a_silent_claim_of_another_host_is_taken_over_after_the_lease(tmp_path: Path) -> None:
    path = tmp_path / "claims" / "corpus-k"
    path.parent.mkdir()
    path.write_text(json.dumps({"token": "t", "host": "another", "pid": 1, "started": 1.0}), encoding="utf-8")
    assert acquire(path, 30.0) is None
    os.utime(path, (time.time() - 31, time.time() - 31))
    assert acquire(path, 30.0) is not None


def test_a_living_claim_beats(tmp_path: Path) -> None:
    path = tmp_path / "claims" / "corpus-k"
    held = acquire(path, 0.5)
    assert held is not None
    with held:
        os.utime(path, (0, 0))
        wait_until(lambda: path.stat().st_mtime > 0, seconds=20)
    assert not path.exists()


def test_a_process_that_lost_its_claim_publishes_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path, lease_seconds=30.0)
    held = store.claim("corpus", KEY)
    assert held is not None
    (store.empty_output(held, "corpus", KEY) / "data").write_text("late", encoding="utf-8")
    path = store.claim_path("corpus", KEY)
    holder = read_holder(path)
    assert holder is not None
    path.write_text(json.dumps(holder | {"token": "another"}), encoding="utf-8")
    with pytest.raises(ClaimLostError, match="taken over"):
        store.publish(held, "corpus", KEY, {})
    assert store.find("corpus", KEY) is None


def test_a_claim_that_is_lost_while_the_disk_is_written_publishes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path)
    held = store.claim("corpus", KEY)
    assert held is not None
    (store.empty_output(held, "corpus", KEY) / "data").write_text("late", encoding="utf-8")
    lose = lambda output: held.path.write_text('{"token": "another"}')  # noqa: E731
    monkeypatch.setattr("paribus.store.artifacts.sync_tree", lose)
    with pytest.raises(ClaimLostError):
        store.publish(held, "corpus", KEY, {})
    assert store.find("corpus", KEY) is None


def test_late_writes_of_a_process_do_not_reach_its_successor(tmp_path: Path) -> None:
    store = Store(tmp_path)
    held = store.claim("corpus", KEY)
    assert held is not None
    late = store.empty_output(held, "corpus", KEY)
    with (late / "data").open("w", encoding="utf-8") as open_file:
        store.claim_path("corpus", KEY).unlink()
        successor = store.claim("corpus", KEY)
        assert successor is not None
        with successor:
            output = store.empty_output(successor, "corpus", KEY)
            (output / "data").write_text("content", encoding="utf-8")
            late.mkdir(exist_ok=True)
            for name in ("data", "more"):
                (late / name).write_text("late", encoding="utf-8")
            artifact = store.publish(successor, "corpus", KEY, {"result": {}})
        open_file.write("later")
    assert [path.name for path in artifact.path.iterdir() if path.name != "record.json"] == ["data"]
    assert (artifact.path / "data").read_text(encoding="utf-8") == "content"
    assert store.find("corpus", KEY) is not None


def test_a_claim_is_kept_by_a_child_whose_parent_is_stopped(tmp_path: Path) -> None:
    path = tmp_path / "claims" / "corpus-k"
    code = (
        "import subprocess, sys; from pathlib import Path; from paribus.store.claims import acquire\n"
        "held = acquire(Path(sys.argv[1]), 1.0)\n"
        "held.beat()\n"
        "along = 'import sys, time; from pathlib import Path; from paribus.store.claims import Claim;"
        "Claim(Path(sys.argv[1]), sys.argv[2], 1.0).beat(); print(1, flush=True); time.sleep(600)'\n"
        "child = subprocess.Popen([sys.executable, '-c', along, sys.argv[1], held.token], stdout=subprocess.PIPE)\n"
        "child.stdout.readline(); print(child.pid, flush=True); child.wait()"
    )
    parent = subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    try:
        parent.send_signal(signal.SIGSTOP)
        os.utime(path, (0, 0))
        wait_until(lambda: path.stat().st_mtime > 0, seconds=20)
        assert acquire(path, 1.0) is None
        os.kill(child, signal.SIGKILL)
        wait_until(lambda: acquire(path, 1.0) is not None, seconds=20)
    finally:
        parent.kill()
        parent.wait()


def test_a_child_whose_claim_was_taken_over_stops_at_once(tmp_path: Path) -> None:
    path = tmp_path / "claims" / "corpus-k"
    path.parent.mkdir()
    path.write_text(json.dumps({"token": "another", "host": "h", "pid": 1, "started": 1.0}), encoding="utf-8")
    reading, writing = os.pipe()
    child = subprocess.Popen(
        [sys.executable, "-c", RUN_STAGE, str(writing)],
        stdin=subprocess.PIPE,
        pass_fds=[writing],
        start_new_session=True,
    )
    os.close(writing)
    places = {name: str(tmp_path / name) for name in ("output", "work")}
    for place in places.values():
        Path(place).mkdir()
    config = to_plain(compose_command(parse(["scale=tiny", "corpus=pydocs"])).jobs[0].config)
    job = {"stage": "corpus", "config": config, "inputs": {}, **places}
    job |= {"claim": {"path": str(path), "token": "mine", "lease": 0.5}, "code": vars(loaded_code())}
    child.communicate(json.dumps(job).encode())
    os.close(reading)
    assert child.returncode == -signal.SIGKILL


OTHER = {"token": "t", "host": "another", "machine": "another", "pid": 1, "started": 1.0}


def claimed_by_another(path: Path, seconds_ahead: float = 0.0) -> None:
    """A claim of a process on another host whose last heartbeat was stamped so far in the future."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(OTHER), encoding="utf-8")
    os.utime(path, (time.time() + seconds_ahead,) * 2)


def test_a_dead_claim_from_the_future_is_taken_over_a_lease_after_the_clock_was_set_back(tmp_path: Path) -> None:
    path = tmp_path / "claims" / "corpus-k"
    claimed_by_another(path, seconds_ahead=3600)
    began = time.monotonic()
    wait_until(lambda: acquire(path, 0.5) is not None, seconds=20)
    assert time.monotonic() - began >= 0.5


def test_a_living_claim_outlives_a_clock_that_is_set_back(tmp_path: Path) -> None:
    path = tmp_path / "claims" / "corpus-k"
    held = acquire(path, 1.0)
    assert held is not None
    with held:
        os.utime(path, (time.time() + 3600,) * 2)
        assert acquire(path, 1.0) is None
        wait_until(lambda: path.stat().st_mtime < time.time() + 60, seconds=20)
        assert acquire(path, 1.0) is None and held.held()


@pytest.mark.parametrize("ahead", [-3600, 3600])
def test_a_node_whose_own_clock_is_wrong_judges_claims_by_that_of_the_file_system(tmp_path: Path, ahead: int) -> None:
    living, dead = tmp_path / "claims" / "corpus-living", tmp_path / "claims" / "corpus-dead"
    claimed_by_another(living)
    claimed_by_another(dead, seconds_ahead=-60)
    code = (
        "import sys, time; from pathlib import Path; right = time.time\n"
        "time.time = lambda: right() + int(sys.argv[1])\n"
        "time.time_ns = lambda: int(time.time() * 1e9)\n"
        "from paribus.store.claims import acquire\n"
        "print([acquire(Path(path), 30.0) is not None for path in sys.argv[2:]])"
    )
    arguments = [sys.executable, "-c", code, str(ahead), str(living), str(dead)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[False, True]"


@pytest.mark.parametrize("content", ["", "{", "[]", '{"token": "t"}', "\0\0\0"])
def test_a_torn_claim_is_waited_for_and_taken_over_after_the_lease(tmp_path: Path, content: str) -> None:
    path = tmp_path / "claims" / "corpus-k"
    path.parent.mkdir()
    path.write_text(content, encoding="utf-8")
    assert acquire(path, 30.0) is None
    os.utime(path, (time.time() - 31,) * 2)
    assert acquire(path, 30.0) is not None


def test_a_claim_is_judged_by_the_lease_of_who_holds_it(tmp_path: Path) -> None:
    path = tmp_path / "claims" / "corpus-k"
    claimed_by_another(path, seconds_ahead=-100)
    path.write_text(json.dumps(OTHER | {"lease": 300.0}), encoding="utf-8")
    os.utime(path, (time.time() - 100,) * 2)
    assert is_held(path, 30.0)
    assert acquire(path, 30.0) is None
    os.utime(path, (time.time() - 301,) * 2)
    assert acquire(path, 600.0) is not None


@pytest.mark.parametrize("hidden", [FileNotFoundError, PermissionError])
def test_a_process_of_another_user_that_proc_hides_is_not_taken_for_dead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hidden: type[OSError]
) -> None:
    """With hidepid=2 there is no entry in /proc, with hidepid=1 it may not be read; the kernel knows the number."""
    path = tmp_path / "claims" / "corpus-k"
    child = holder_process(path)

    def refused(pid: int, number: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    read = Path.read_text

    def read_text(self: Path, *arguments: str, **options: str) -> str:
        if str(self) == f"/proc/{child.pid}/stat":
            raise hidden(2, "hidden")
        return read(self, *arguments, **options)

    monkeypatch.setattr(Path, "read_text", read_text)
    monkeypatch.setattr(claims.os, "kill", refused)
    assert acquire(path, 60.0) is None
    os.utime(path, (time.time() - 61,) * 2)
    assert acquire(path, 60.0) is not None
    monkeypatch.undo()
    child.kill()
    child.wait()


def test_work_goes_on_while_a_file_server_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = acquire(tmp_path / "claims" / "corpus-k", 30.0)
    assert held is not None

    def no_answer(path: Path) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(claims, "read_holder", no_answer)
        held.watch()
        with pytest.raises(OSError, match="Input/output"):
            held.check()
    held.path.unlink()
    with pytest.raises(ClaimLostError):
        held.watch()


def test_a_claim_in_a_container_of_the_same_name_is_not_judged_by_process_numbers_here(tmp_path: Path) -> None:
    path = tmp_path / "claims" / "corpus-k"
    path.parent.mkdir()
    path.write_text(json.dumps(OTHER | {"host": socket.gethostname(), "pid": 2**22 + 1}), encoding="utf-8")
    assert acquire(path, 30.0) is None
