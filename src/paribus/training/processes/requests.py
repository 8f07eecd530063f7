"""What signals ask of a training: a checkpoint (SIGUSR1), or a checkpoint and the end (SIGTERM)."""

import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from paribus.errors import InterruptedRunError

SAVE, STOP = b"s", b"t"
ASKED_BY: Mapping[int, bytes] = {signal.SIGUSR1: SAVE, signal.SIGTERM: STOP}
SECONDS_BETWEEN_LOOKS = 0.2
STEPPING = "stepping_"
"""How the name of a file beside requests begins by which a process tells agents that it takes steps, and heeds them."""


class Asked(NamedTuple):
    """What has been asked for since it was last answered."""

    save: bool
    stop: bool


class Requests:
    """What signals ask of this process and, in `file`, what they asked of the agent that started it.

    A step is not broken off: a request waits until it is taken.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._file, self._own, self._taken = file, bytearray(), 0

    @contextmanager
    def heeded(self) -> Iterator[None]:
        """In the block, keep what signals ask; must be entered by the main thread."""
        told = _told_to_agents(self._file.parent) if self._file else nullcontext()
        with _handled(lambda number: self._own.extend(ASKED_BY[number])), told:
            yield

    def take(self) -> Asked:
        """What was asked for since the last call."""
        # Taken out at once: a signal may come between any two steps of this.
        own, self._own = self._own, bytearray()
        told = bytes(own) + self._read()
        return Asked(SAVE in told, STOP in told)

    def wait_for_others(self) -> None:
        """Wait while processes that the same agent started take steps, or write the checkpoint that they end with."""
        while self._file and any(self._file.parent.glob(f"{STEPPING}*")):
            time.sleep(SECONDS_BETWEEN_LOOKS)

    def _read(self) -> bytes:
        if self._file is None or not self._file.exists():
            return b""
        told = self._file.read_bytes()[self._taken :]
        self._taken += len(told)
        return told


@contextmanager
def passed_on(file: Path) -> Iterator[None]:
    """In the block, append to `file` what signals ask of this process, for the `Requests` of those it started.

    While none of these takes steps there is nothing to save: SIGTERM raises InterruptedRunError here.
    """

    def write(number: int) -> None:
        if number == signal.SIGTERM and not any(file.parent.glob(f"{STEPPING}*")):
            raise InterruptedRunError("stopped by a signal while no step was taken")
        descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        os.write(descriptor, ASKED_BY[number])
        os.close(descriptor)

    with _handled(write):
        yield


@contextmanager
def _told_to_agents(directory: Path) -> Iterator[None]:
    with tempfile.NamedTemporaryFile(prefix=STEPPING, dir=directory):
        yield


@contextmanager
def _handled(heard: Callable[[int], None]) -> Iterator[None]:
    def handler(number: int, frame: FrameType | None) -> None:
        heard(number)

    before: dict[int, Any] = {number: signal.signal(number, handler) for number in ASKED_BY}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)
