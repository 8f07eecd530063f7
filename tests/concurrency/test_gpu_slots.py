"""GPUs shared by count among processes of one machine. The driver's list is a program that stands in for nvidia-smi."""

import subprocess
import sys
from pathlib import Path

import pytest

from paribus.engine.gpus import Gpu, reserved, visible_gpus
from paribus.errors import ConfigurationError

GPUS = [Gpu("0", "GPU-a"), Gpu("1", "GPU-b"), Gpu("2", "GPU-c")]
HOLD = """
import sys, time
from pathlib import Path
from paribus.engine.gpus import Gpu, reserved
gpus = [Gpu(str(number), f"GPU-{name}") for number, name in enumerate("abc")]
with reserved(int(sys.argv[2]), gpus, Path(sys.argv[1]), lambda: print("waits", flush=True)) as taken:
    print(",".join(gpu.uuid for gpu in taken), flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine whose driver lists three GPUs."""
    programs = tmp_path / "programs"
    programs.mkdir()
    listed = "".join(f"echo '{gpu.name}, {gpu.uuid}'\n" for gpu in GPUS)
    (programs / "nvidia-smi").write_text(f"#!/bin/sh\n{listed}", encoding="utf-8")
    (programs / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def holder(directory: Path, count: int) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, "-c", HOLD, str(directory), str(count)], stdin=pipe, stdout=pipe, text=True
    )


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
    ):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        assert visible_gpus() == expected
