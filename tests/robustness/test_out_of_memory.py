"""A stage that the kernel kills for want of memory: its own class of failure, which is not tried again."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.command_line import OVERRIDES, command, write_corpus

MEMORY = Path("/sys/fs/cgroup/memory")
LIMIT = 140 * 2**20


@pytest.fixture
def small_memory() -> Iterator[Path]:
    """A control group of 140 MiB: enough for paribus, too little for PyTorch. Making one needs root."""
    control = MEMORY / f"paribus-test-{os.getpid()}"
    if os.geteuid() != 0 or not (MEMORY / "memory.limit_in_bytes").exists():
        pytest.skip("making a small control group needs root and the memory controller of version 1")
    control.mkdir()
    (control / "memory.limit_in_bytes").write_text(str(LIMIT), encoding="ascii")
    yield control
    control.rmdir()


def test_a_process_that_the_kernel_kills_ran_out_of_memory(tmp_path: Path, small_memory: Path) -> None:
    write_corpus(tmp_path)
    enter = ["sh", "-c", 'echo $$ > "$0" && exec "$@"', str(small_memory / "tasks")]
    run = [*enter, *command(("run", *OVERRIDES))]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "trying again" not in done.stdout
    (record,) = (tmp_path / "paribus_runs/runs").glob("*/run.json")
    failure = json.loads(record.read_text(encoding="utf-8"))["failure"]
    assert failure["class"] == "out-of-memory"
    assert "the kernel killed the process for want of memory" in failure["message"]
