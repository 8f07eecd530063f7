"""GPUs shared by count among processes of one machine. The driver's list is a program that stands in for nvidia-smi."""

import contextlib
import fcntl
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from paribus.engine.gpu_tickets import Ticket
from paribus.engine.gpus import Gpu, reserved, visible_gpus
from paribus.errors import ConfigurationError
from support.drivers import list_gpus

GPUS = [Gpu("0", "GPU-a"), Gpu("1", "GPU-b"), Gpu("2", "GPU-c")]
HOLD = """
import sys, time
from pathlib import Path
from paribus.engine.gpus import Gpu, reserved
gpus = [Gpu(str(number), f"GPU-{name}") for number, name in enumerate(sys.argv[3])]
with reserved(int(sys.argv[2]), gpus, Path(sys.argv[1]), lambda: print("waits", flush=True)) as taken:
    print(",".join(gpu.uuid for gpu in taken), flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine whose driver lists three GPUs."""
    list_gpus(GPUS, tmp_path, monkeypatch)


def holder(directory: Path, count: int, visible: str = "abc") -> subprocess.Popen[str]:
    """A job that takes GPUs, and ends when it reads a line."""
    command = [sys.executable, "-c", HOLD, str(directory), str(count), visible]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def ended(process: subprocess.Popen[str]) -> None:
    process.communicate("\n", timeout=20)


def test_processes_have_gpus_of_their_own_and_the_next_waits_until_enough_are_free(tmp_path: Path) -> None:
    first, second = holder(tmp_path, 1), holder(tmp_path, 1)
    taken = {said(first), said(second)}
    assert len(taken) == 2
    third = holder(tmp_path, 2)
    assert said(third) == "waits"
    first.kill()
    first.wait()
    had = set(said(third).split(","))
    assert len(had) == 2
    assert len(taken & had) == 1
    ended(second)
    ended(third)


def test_who_waits_for_all_is_not_overtaken_by_who_wants_one(tmp_path: Path) -> None:
    first = holder(tmp_path, 2)
    assert said(first) == "GPU-a,GPU-b"
    everything = holder(tmp_path, 0)
    assert said(everything) == "waits"
    late = holder(tmp_path, 1)
    assert said(late) == "waits"
    ended(first)
    assert said(everything) == "GPU-a,GPU-b,GPU-c"
    ended(everything)
    assert said(late) == "GPU-a"
    ended(late)


def test_who_waits_for_one_gpu_holds_up_nobody_who_sees_only_others(tmp_path: Path) -> None:
    first = holder(tmp_path, 1, "a")
    assert said(first) == "GPU-a"
    waits = holder(tmp_path, 1, "a")
    assert said(waits) == "waits"
    other = holder(tmp_path, 1, "b")
    assert said(other) == "GPU-b"
    ended(other)
    either = holder(tmp_path, 1, "ab")
    assert said(either) == "GPU-b"
    later = holder(tmp_path, 1, "a")
    assert said(later) == "waits"
    ended(first)
    assert said(waits) == "GPU-a"
    ended(either)
    ended(waits)
    assert said(later) == "GPU-a"
    ended(later)
    assert not list(tmp_path.glob("*ticket-*"))


def test_a_free_gpu_is_kept_for_who_waits_for_it_and_another(tmp_path: Path) -> None:
    first = holder(tmp_path, 1, "a")
    assert said(first) == "GPU-a"
    both = holder(tmp_path, 2, "ab")
    assert said(both) == "waits"
    late = holder(tmp_path, 1, "b")
    assert said(late) == "waits"
    third = holder(tmp_path, 1, "bc")
    assert said(third) == "GPU-c"
    ended(third)
    ended(first)
    assert said(both) == "GPU-a,GPU-b"
    ended(both)
    assert said(late) == "GPU-b"
    ended(late)


def test_who_was_killed_while_waiting_holds_up_nobody(tmp_path: Path) -> None:
    first = holder(tmp_path, 1, "a")
    assert said(first) == "GPU-a"
    waits = holder(tmp_path, 2, "ab")
    assert said(waits) == "waits"
    waits.kill()
    waits.wait()
    other = holder(tmp_path, 1, "b")
    assert said(other) == "GPU-b"
    ended(other)
    ended(first)


@pytest.mark.parametrize("content", ["", "[]", '{"wanted": "all", "uuids": 3}', "\0"])
def test_what_is_no_ticket_holds_up_nobody(tmp_path: Path, content: str) -> None:
    path = tmp_path / "ticket-000000000001"
    path.write_text(content, encoding="utf-8")
    with path.open(encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with reserved(1, GPUS, tmp_path, lambda: None) as taken:
            assert taken == (GPUS[0],)


@pytest.mark.parametrize("name", ["../victim/.hushlogin", "/absolute", ".", "a/b"])
def test_a_ticket_makes_no_file_elsewhere(tmp_path: Path, name: str) -> None:
    directory, victim = tmp_path / "locks", tmp_path / "victim"
    directory.mkdir()
    victim.mkdir()
    written = str(victim / "file") if name == "/absolute" else name
    with (directory / "ticket-000000000001").open("w", encoding="utf-8") as ticket:
        json.dump({"wanted": 1, "uuids": [written, "GPU-a"]}, ticket)
        ticket.flush()
        fcntl.flock(ticket, fcntl.LOCK_EX)
        with reserved(1, GPUS, directory, lambda: None) as taken:
            assert taken == (GPUS[0],)
    assert list(victim.iterdir()) == []


def test_a_ticket_makes_no_file_for_gpus_that_nobody_used(tmp_path: Path) -> None:
    with (tmp_path / "ticket-000000000001").open("w", encoding="utf-8") as ticket:
        json.dump({"wanted": 1, "uuids": ["GPU-of-nobody"]}, ticket)
        ticket.flush()
        fcntl.flock(ticket, fcntl.LOCK_EX)
        with reserved(1, GPUS, tmp_path, lambda: None):
            pass
    assert not (tmp_path / "GPU-of-nobody").exists()


@pytest.mark.parametrize("kind", ["fifo", "link", "directory"])
def test_what_is_no_file_in_place_of_a_ticket_holds_up_nobody(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "ticket-000000000001"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "link":
        path.symlink_to(tmp_path / "elsewhere")
    else:
        path.mkdir()
    job = holder(tmp_path, 1)
    assert said(job) == "GPU-a"
    ended(job)
    assert not (tmp_path / "elsewhere").exists()


def test_every_user_may_wait_and_nobody_may_remove_what_another_put_there(tmp_path: Path) -> None:
    directory = tmp_path / "shared"
    with reserved(1, GPUS, directory, lambda: None):
        assert stat.S_IMODE(directory.stat().st_mode) == 0o1777
        assert {stat.S_IMODE(path.stat().st_mode) & 0o444 for path in directory.iterdir()} == {0o444}


def test_a_ticket_is_gone_before_its_lock_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else another would clear it away in between, and a third draw the number that is then removed."""
    unlink, locked = Path.unlink, []

    def unlinking(self: Path, missing_ok: bool = False) -> None:
        with self.open(encoding="utf-8") as file, contextlib.suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            pytest.fail(f"{self} was unlocked")
        locked.append(self.name)
        unlink(self, missing_ok)

    monkeypatch.setattr(Path, "unlink", unlinking)
    with Ticket.drawn(tmp_path, 1, ["GPU-a"]):
        pass
    assert locked == ["ticket-000000000001"]


def test_the_umask_of_the_first_user_locks_nobody_out(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        with reserved(1, GPUS, tmp_path / "shared", lambda: None):
            modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "shared").iterdir()}
    finally:
        os.umask(before)
    assert modes == {0o644}


def test_more_than_there_are_is_a_configuration_error(tmp_path: Path) -> None:
    expected = pytest.raises(ConfigurationError, match=r"training\.processes: 4 need a GPU each, but this job sees 3")
    with expected, reserved(4, GPUS, tmp_path, lambda: None):
        pass


def test_a_link_in_place_of_a_lock_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "GPU-a").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError), reserved(1, GPUS[:1], tmp_path, lambda: None):
        pass
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.usefixtures("driver")
def test_gpus_are_those_of_the_driver_that_the_environment_leaves_visible(monkeypatch: pytest.MonkeyPatch) -> None:
    assert visible_gpus() == GPUS
    for visible, expected in (
        ("2,0", [GPUS[2], GPUS[0]]),
        ("GPU-b", [Gpu("GPU-b", "GPU-b")]),
        ("MIG-x", [Gpu("MIG-x", "MIG-x")]),
        ("", []),
        ("-1", []),
        ("0,-1,1", [GPUS[0]]),
        ("NoDevFiles", []),
        ("1,7,2", [GPUS[1]]),
    ):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        assert visible_gpus() == expected
