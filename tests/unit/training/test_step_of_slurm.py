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
from paribus.training.processes.nodes import SlurmNodes
from paribus.training.processes.processes import Processes

os.setsid()
signal.signal(signal.SIGTERM, lambda number, frame: Path(os.environ["HEARD"] + ".asked").touch())
SlurmNodes(Processes(1, 2)).run(Path(sys.argv[1]))
"""


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 30
    while not path.exists():
        assert time.monotonic() < deadline, path
        time.sleep(0.01)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="Linux alone tells a process that its parent is dead")
def test_agents_are_killed_when_their_starter_is_dead_and_not_when_it_is_asked_to_end(tmp_path: Path) -> None:
    heard = tmp_path / "heard"
    (tmp_path / "srun").write_text(SRUN)
    (tmp_path / "srun").chmod(0o755)
    (tmp_path / "starter.py").write_text(STARTER)
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "HEARD": str(heard)}
    starter = Forked([str(tmp_path / "starter.py"), str(tmp_path)], env=environment)
    wait_for(tmp_path / "heard.begun")
    os.killpg(starter.pid, signal.SIGTERM)
    wait_for(tmp_path / "heard.asked")
    time.sleep(0.5)
    assert starter.poll() is None and not heard.exists()
    os.killpg(starter.pid, signal.SIGKILL)
    wait_for(heard)
