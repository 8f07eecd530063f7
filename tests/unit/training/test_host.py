"""Processes of a training that wait for one of them, each here a process of its own."""

import os
import socket
from pathlib import Path

from support.forked import Forked

WAIT = """
import time
from datetime import timedelta
from paribus.config.groups.training import TrainingConfig
from paribus.training import parallel
from paribus.training.distributed import join_host

parallel.COLLECTIVE = timedelta(seconds=2)
accelerator, _ = parallel.make_accelerator(TrainingConfig(device="cpu"), 2)
host = join_host(accelerator)

if host.main:
    time.sleep(4)  # as it takes to verify a checkpoint
host.wait()
print(host.agreed([host.main, not host.main, False]))
"""


def run_two(directory: Path) -> list[tuple[int, str, str]]:
    """Exit status, output and errors of two processes that wait for the first."""
    program = directory / "wait.py"
    program.write_text(WAIT, encoding="utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    group = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": "2", "ACCELERATE_USE_CPU": "true"}
    ranks = [{"RANK": str(rank), "LOCAL_RANK": str(rank), "OMP_NUM_THREADS": "1"} for rank in range(2)]
    processes = [Forked([str(program)], env=os.environ | group | rank) for rank in ranks]
    said = [process.communicate(timeout=120) for process in processes]
    return [(process.wait(), *texts) for process, texts in zip(processes, said, strict=True)]


def test_a_checkpoint_takes_longer_to_verify_than_a_collective_may_last(tmp_path: Path) -> None:
    for status, output, errors in run_two(tmp_path):
        assert status == 0, errors
        assert output.splitlines() == ["[True, True, False]"]
