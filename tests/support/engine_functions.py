"""Functions that tests of engines map, importable by the processes that call them."""

import os
import signal
import time
from pathlib import Path
from typing import NamedTuple

from paribus.errors import DataError


class Task(NamedTuple):
    """A number, and the directory in which everybody who computes it leaves a mark."""

    directory: Path
    number: int

    def executions(self) -> int:
        """How often it was begun."""
        return len(list(self.directory.glob(f"{self.number}.*")))

    def begin(self) -> int:
        """Leave a mark; the number of marks that there are now."""
        (self.directory / f"{self.number}.{os.getpid()}.{time.monotonic_ns()}").touch()
        return self.executions()


def square(task: Task) -> int:
    """The square, a moment after it was begun."""
    task.begin()
    time.sleep(0.002 * (task.number % 3))
    return task.number**2


def refuse_five(task: Task) -> int:
    """The square but of five, which is refused."""
    task.begin()
    if task.number == 5:
        raise DataError("five is not allowed")
    return task.number**2


def die_once_at_five(task: Task) -> int:
    """The square; the first process to compute five is killed."""
    if task.begin() == 1 and task.number == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return task.number**2


def die_at_five(task: Task) -> int:
    """The square; every process that computes five is killed."""
    task.begin()
    if task.number == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return task.number**2


def slow_square(task: Task) -> int:
    """The square, half a second after it was begun."""
    task.begin()
    time.sleep(0.5)
    return task.number**2


def write_pid(task: Task) -> int:
    """Say which process this is by a file, and work on for minutes where the number is odd."""
    (task.directory / f"{os.getpid()}.pid").touch()
    time.sleep(300 if task.number % 2 else 0.2)
    return task.number
