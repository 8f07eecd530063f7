"""What a training that lost a process to signal 9 is said to have failed of."""

import errno
import json
import os
import signal
import socket
import sys
import time
from pathlib import Path

import pytest
from torch.distributed import PrefixStore, TCPStore
from torch.distributed.elastic.rendezvous import RendezvousParameters
from torch.distributed.elastic.rendezvous.registry import get_rendezvous_handler

from paribus.errors import FullDiskError, InfrastructureError, NumericalError, OutOfMemoryError
from paribus.training import launch
from paribus.training.distributed import report_failure
from paribus.training.launch import _failure, free_endpoint
from support.forked import Forked

KILLED = {1: -9}


def test_a_process_is_out_of_memory_only_where_the_kernel_counted_such_a_kill(tmp_path: Path) -> None:
    assert isinstance(_failure(tmp_path, KILLED, memory_kills=1), OutOfMemoryError)
    outside = _failure(tmp_path, KILLED, memory_kills=0)
    assert isinstance(outside, InfrastructureError)
    assert "process 1 was killed from outside (signal 9)" in str(outside)


def test_what_another_process_explained_comes_first(tmp_path: Path) -> None:
    report_failure(tmp_path, "process 0", NumericalError("the loss is NaN"))
    assert isinstance(_failure(tmp_path, KILLED, memory_kills=1), NumericalError)


def test_a_rank_that_found_the_disk_full_is_not_taken_for_a_passing_trouble(tmp_path: Path) -> None:
    report_failure(tmp_path, "process 0", OSError(errno.ENOSPC, "No space left on device", "/root/step_100"))
    assert isinstance(_failure(tmp_path, {0: 1}), FullDiskError)


def test_an_agent_that_fails_before_its_processes_begin_says_of_what(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run_node(*_: object) -> None:
        raise RuntimeError("the port is taken")

    for name in ("die_with_parent", "ignore_requests"):
        monkeypatch.setattr(launch, name, lambda: None)
    monkeypatch.setattr(launch, "run_node", run_node)
    monkeypatch.setattr(sys, "argv", ["launch", str(tmp_path), "3"])
    assert launch.main() == 1
    assert str(_failure(tmp_path, {})) == "RuntimeError: the port is taken (the agent of node 3)"


# How the agents of several nodes meet, each here a process of its own on this machine.

AGENT = """
import sys
from pathlib import Path
from paribus.training.launch import run_node

run_node(Path(sys.argv[1]), int(sys.argv[2]), "member_of_a_node")
"""
MEMBER = """
import os, sys
from pathlib import Path

def main():
    (Path(sys.argv[1]) / f"rank_{os.environ['RANK']}").write_text(Path(sys.argv[2]).name)
"""


def test_the_main_process_is_on_the_first_node_whichever_agent_is_there_first(tmp_path: Path) -> None:
    """Its reports are read there while it writes; a network file system may show them to other nodes much later."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        endpoint = f"127.0.0.1:{free.getsockname()[1]}"
    job = {
        "id": "a",
        "endpoint": endpoint,
        "nodes": 2,
        "processes_a_node": 1,
        "config": {"training": {"device": "cpu", "deterministic": False}},
    }
    (tmp_path / "job.json").write_text(json.dumps(job))
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "member_of_a_node.py").write_text(MEMBER)
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    # By their numbers, which PyTorch may take to tell nodes of one name apart, node 1 is first.
    agents = [Forked([str(tmp_path / "agent.py"), str(tmp_path), str(node)], env=environment) for node in (1, 0)]
    for agent in agents:
        _, errors = agent.communicate(timeout=120)
        assert agent.wait() == 0, errors
    found = {path.name: path.read_text() for path in tmp_path.glob("rank_*")}
    assert found == {"rank_0": "requests_0", "rank_1": "requests_1"}


def test_agents_that_are_alone_have_a_store_each_at_a_port_that_is_free() -> None:
    endpoints = [free_endpoint() for _ in range(2)]
    handlers = [
        get_rendezvous_handler(RendezvousParameters("static", endpoint, "a", 1, 1, rank=0)) for endpoint in endpoints
    ]
    assert endpoints[0] != endpoints[1] and all(handler.use_agent_store for handler in handlers)
    found = [handler.next_rendezvous() for handler in handlers]
    where = found[0].bootstrap_store_info
    assert where is not None
    found[0].store.set("who", "the first")
    member = TCPStore(where.master_addr, where.master_port, is_master=False)
    assert PrefixStore("a", member).get("who") == b"the first"
    assert not found[1].store.check(["who"])


# What `srun` hears of the signals that the process gets which starts it.

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
