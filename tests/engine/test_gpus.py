"""GPUs shared by count among processes of one machine. The driver's list is a program that stands in for nvidia-smi."""

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from paribus.engine.gpus import Gpu, reserved, visible_gpus
from paribus.errors import ConfigurationError
from support.nvidia_smi import list_gpus

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


def test_a_waiting_process_holds_no_gpu(tmp_path: Path) -> None:
    first = holder(tmp_path, 1, "a")
    assert said(first) == "GPU-a"
    waits = holder(tmp_path, 0, "ab")
    assert said(waits) == "waits"
    other = holder(tmp_path, 1, "ab")
    assert said(other) == "GPU-b"
    ended(first)
    ended(other)
    assert said(waits) == "GPU-a,GPU-b"
    ended(waits)


def test_every_user_may_wait_and_nobody_may_remove_what_another_put_there(tmp_path: Path) -> None:
    directory = tmp_path / "shared"
    with reserved(1, GPUS, directory, lambda: None):
        assert stat.S_IMODE(directory.stat().st_mode) == 0o1777
        assert {stat.S_IMODE(path.stat().st_mode) & 0o444 for path in directory.iterdir()} == {0o444}


def test_more_than_there_are_is_a_configuration_error(tmp_path: Path) -> None:
    expected = pytest.raises(ConfigurationError, match=r"training\.processes: 4 need a GPU each, but this job sees 3")
    with expected, reserved(4, GPUS, tmp_path, lambda: None):
        pass


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


def test_a_link_in_place_of_a_lock_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "GPU-a").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError), reserved(1, GPUS[:1], tmp_path, lambda: None):
        pass
    assert not (tmp_path / "elsewhere").exists()
