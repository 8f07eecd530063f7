"""Trainings in processes of their own, which get signals: `tests/training/process_scenarios.py`."""

import os
import signal
import time
from pathlib import Path

from support.forked import PATHS, TESTS, Forked

SCENARIOS = TESTS / "training" / "process_scenarios.py"
STEPS_BEFORE = 40


def begin(root: Path, name: str) -> Forked:
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": PATHS}
    return Forked([str(SCENARIOS), str(root), name], env=environment, members=2)


def finish(process: Forked) -> str:
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    return output


def send_in_a_step(process: Forked, number: signal.Signals, metrics: Path) -> None:
    """Signal a training that has made some steps."""
    while not metrics.exists() or metrics.read_bytes().count(b"\n") < STEPS_BEFORE:
        assert process.poll() is None, process.communicate()
        time.sleep(0.005)
    process.send_signal(number)
