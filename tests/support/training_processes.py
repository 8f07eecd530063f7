"""Programs in processes of their own, which get signals, such as the trainings of `training/process_scenarios.py`."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import psutil

from paribus.training.launch import free_endpoint
from support.waiting import wait_until

TESTS = Path(__file__).resolve().parents[1]
PATHS = f"{TESTS}{os.pathsep}{TESTS.parent / 'src'}"
"""PYTHONPATH of processes that compute with the code of this checkout."""
SCENARIOS = TESTS / "training" / "process_scenarios.py"
STEPS_BEFORE = 40
"""Steps that a training makes before it gets a signal."""
Program = subprocess.Popen[str]


def begin_program(words: Sequence[str], **variables: str) -> Program:
    """Start `python WORDS` with one thread and variables of its environment."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": PATHS} | variables
    command = [sys.executable, *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def begin(root: Path, name: str, **variables: str) -> Program:
    """Start the scenario `name` of `training/process_scenarios.py`."""
    return begin_program([str(SCENARIOS), str(root), name], **variables)


def begin_group(words: Sequence[str], size: int) -> list[Program]:
    """Start a script in each of the processes of a group that compute on the CPU, by rank."""
    host, port = free_endpoint().split(":")
    group = {"MASTER_ADDR": host, "MASTER_PORT": port, "WORLD_SIZE": str(size), "ACCELERATE_USE_CPU": "true"}
    return [begin_program(words, **group, RANK=str(rank), LOCAL_RANK=str(rank)) for rank in range(size)]


def members_below(process: psutil.Process) -> dict[str, psutil.Process]:
    """The processes of the group that a process has started, by rank."""
    children = {child.environ().get("RANK"): child for child in process.children()}
    return {rank: child for rank, child in children.items() if rank is not None}


def finish(process: Program) -> str:
    """What a process that succeeds prints."""
    output, errors = process.communicate(timeout=200)
    assert process.returncode == 0, errors
    return output


def send_after_steps(process: Program, number: signal.Signals, work: Path, steps: int) -> None:
    """Signal a training that has made so many steps."""
    metrics = work / "metrics.jsonl"
    wait_until(lambda: metrics.exists() and metrics.read_bytes().count(b"\n") >= steps, process)
    process.send_signal(number)
