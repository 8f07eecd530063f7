"""What `srun` hears of the signals that the process gets which starts it."""

import os
import signal
import time
from pathlib import Path

import pytest

from support.forked import Forked

SRUN = """#!/bin/sh
# As SLURM's, which then kills what it started.
trap 'echo forcing job termination > "$HEARD"; exit 1' TERM
touch "$HEARD.begun"
while :; do sleep 0.05; done
"""
STARTER = """
import os, signal, sys
from pathlib import Path
from paribus.training.launch import SlurmNodes
from paribus.training.distributed import Processes

os.setsid()
signal.signal(signal.SIGTERM, lambda number, frame: Path(os.environ["HEARD"] + ".asked").touch())
SlurmNodes(Processes(1, 2)).run(Path(sys.argv[1]))
"""

INTERRUPTED = """
import sys
from pathlib import Path
from paribus.errors import InterruptedRunError
from paribus.training.launch import SlurmNodes
from paribus.training.distributed import Processes
from paribus.training.distributed import passed_on

try:
    with passed_on(Path(sys.argv[1], "requests_0")):
        SlurmNodes(Processes(1, 2)).run(Path(sys.argv[1]))
except InterruptedRunError:
    sys.exit(7)
"""


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 30
    while not path.exists():
        assert time.monotonic() < deadline, path
        time.sleep(0.01)


def started(script: str, directory: Path) -> Forked:
    """A process of a script, which has begun its `srun`."""
    (directory / "srun").write_text(SRUN)
    (directory / "srun").chmod(0o755)
    (directory / "starter.py").write_text(script)
    path = f"{directory}:{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "HEARD": str(directory / "heard")}
    starter = Forked([str(directory / "starter.py"), str(directory)], env=environment)
    wait_for(directory / "heard.begun")
    return starter


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="Linux alone tells a process that its parent is dead")
def test_agents_are_killed_when_their_starter_is_dead_and_not_when_it_is_asked_to_end(tmp_path: Path) -> None:
    heard = tmp_path / "heard"
    starter = started(STARTER, tmp_path)
    os.killpg(starter.pid, signal.SIGTERM)
    wait_for(tmp_path / "heard.asked")
    time.sleep(0.5)
    assert starter.poll() is None and not heard.exists()
    os.killpg(starter.pid, signal.SIGKILL)
    wait_for(heard)


def test_agents_are_killed_where_their_starter_is_interrupted_before_a_step(tmp_path: Path) -> None:
    starter = started(INTERRUPTED, tmp_path)
    os.kill(starter.pid, signal.SIGTERM)
    assert starter.wait() == 7
    assert (tmp_path / "heard").exists()
