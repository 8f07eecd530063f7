"""What signals ask of a training: a checkpoint (SIGUSR1), or a checkpoint and the end (SIGTERM)."""

import os
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from paribus.errors import InterruptedRunError

SAVE, STOP = b"s", b"t"
ASKED_BY: Mapping[int, bytes] = {signal.SIGUSR1: SAVE, signal.SIGTERM: STOP}
STEPPING = "stepping"
"""The file beside requests by which processes tell their agents that they take steps, and so heed what is asked."""


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
        with _handled(lambda number: self._own.extend(ASKED_BY[number])):
            if self._file is not None:
                (self._file.parent / STEPPING).touch()
            yield

    def take(self) -> Asked:
        """What was asked for since the last call."""
        # Taken out at once: a signal may come between any two steps of this.
        own, self._own = self._own, bytearray()
        told = bytes(own) + self._read()
        return Asked(SAVE in told, STOP in told)

    def _read(self) -> bytes:
        if self._file is None or not self._file.exists():
            return b""
        told = self._file.read_bytes()[self._taken :]
        self._taken += len(told)
        return told


@contextmanager
def passed_on(file: Path) -> Iterator[None]:
    """In the block, append to `file` what signals ask of this process, for the `Requests` of those it started.

    While these take no steps yet there is nothing to save: SIGTERM raises InterruptedRunError here.
    """

    def write(number: int) -> None:
        if number == signal.SIGTERM and not (file.parent / STEPPING).exists():
            raise InterruptedRunError("stopped by a signal before the first step")
        descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        os.write(descriptor, ASKED_BY[number])
        os.close(descriptor)

    with _handled(write):
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
