"""Waiting for what another process does."""

import subprocess
import time
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


def wait_until(
    condition: Callable[[], Result], process: subprocess.Popen[str] | None = None, seconds: float = 120.0
) -> Result:
    """The first true value of `condition`; fails once the process has ended or these seconds have passed."""
    deadline = time.monotonic() + seconds
    while not (result := condition()):
        assert process is None or process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return result
