"""Trainings in processes of their own, which get signals: `tests/training/process_scenarios.py`."""

import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path

from paribus.training.launch import free_endpoint
from support.forked import PATHS, TESTS, Forked

SCENARIOS = TESTS / "training" / "process_scenarios.py"
STEPS_BEFORE = 40


def begin(root: Path, name: str, **variables: str) -> Forked:
    """Start a scenario."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": PATHS} | variables
    return Forked([str(SCENARIOS), str(root), name], env=environment, members=4)


def begin_group(words: Sequence[str], size: int) -> list[Forked]:
    """Start a script in each of the processes of a group that compute on the CPU, by rank."""
    host, port = free_endpoint().split(":")
    group = {"MASTER_ADDR": host, "MASTER_PORT": port, "WORLD_SIZE": str(size), "ACCELERATE_USE_CPU": "true"}
    group |= {"OMP_NUM_THREADS": "1", "PYTHONPATH": PATHS}
    ranks = [{"RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(size)]
    return [Forked(words, env=os.environ | group | rank) for rank in ranks]


def finish(process: Forked) -> str:
    """What a process that succeeds prints."""
    output, errors = process.communicate(timeout=200)
    assert process.returncode == 0, errors
    return output


def send_after_steps(process: Forked, number: signal.Signals, work: Path, steps: int) -> None:
    """Signal a training that has made so many steps."""
    metrics = work / "metrics.jsonl"
    while not metrics.exists() or metrics.read_bytes().count(b"\n") < steps:
        assert process.poll() is None, process.communicate()
        time.sleep(0.005)
    process.send_signal(number)
