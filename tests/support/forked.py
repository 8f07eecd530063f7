"""Python programs in processes of their own that are forked with the imports done, which take most of a small run."""

import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

import psutil

from paribus.pipeline.fork_server import receive, send

TESTS = Path(__file__).resolve().parents[1]
PATHS = f"{TESTS}{os.pathsep}{TESTS.parent / 'src'}"
"""PYTHONPATH of processes that compute with the code of this checkout."""
MEMBER = "member "
"""Before the rank, in the name of a forked member of a group: in the eyes of Linux, a fork has no environment."""


class Forked:
    """As `subprocess.Popen` with text in pipes, of `python WORDS`: -m and a module, or a script.

    So many processes of a group that the program starts with PyTorch's agent, its `members`, are forked as well.
    """

    def __init__(
        self,
        words: Sequence[str],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        members: int = 0,
    ) -> None:
        self.returncode: int | None = None
        self._streams = [tempfile.TemporaryFile("w+") for _ in range(2)]  # noqa: SIM115
        told = {
            "words": list(map(str, words)),
            "directory": str(cwd or Path.cwd()),
            "environment": dict(os.environ if env is None else env),
            "members": members,
        }
        self._server = _server(os.getpid())
        self.pid = self._server.begin(told, [stream.fileno() for stream in self._streams])

    def poll(self) -> int | None:
        return self._end(0)

    def wait(self, timeout: float | None = None) -> int:
        if (code := self._end(timeout)) is None:
            raise subprocess.TimeoutExpired("python", timeout or 0)
        return code

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """What it wrote on standard output and on standard error until its end."""
        self.wait(timeout)
        for stream in self._streams:
            stream.seek(0)
        output, errors = (stream.read() for stream in self._streams)
        return output, errors

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _end(self, timeout: float | None) -> int | None:
        if self.returncode is None:
            self.returncode = self._server.end_of(self.pid, timeout)
        return self.returncode


def run(
    words: Sequence[str], *, cwd: Path | None = None, env: Mapping[str, str] | None = None, members: int = 0
) -> subprocess.CompletedProcess[str]:
    """As `subprocess.run` of `python WORDS`."""
    process = Forked(words, cwd=cwd, env=env, members=members)
    output, errors = process.communicate()
    return subprocess.CompletedProcess(list(words), process.wait(), output, errors)


def in_fork(action: Callable[[], object]) -> int:
    """Wait status of a fork of this process that does something and ends."""
    child = os.fork()
    if child == 0:
        try:
            action()
        except BaseException as error:
            sys.__stderr__.write(f"{type(error).__name__}: {error}\n")  # type: ignore[union-attr]
            os._exit(3)
        os._exit(0)
    return os.waitpid(child, 0)[1]


def members_below(process: psutil.Process) -> dict[str, psutil.Process]:
    """The forked members of the groups that a process started, by rank."""
    named = ((child.name(), child) for child in process.children(recursive=True))
    return {name.removeprefix(MEMBER): child for name, child in named if name.startswith(MEMBER)}


@cache
def _server(process: int) -> "_Server":
    """The server of this process."""
    return _Server()


class _Server:
    """The other end of `forking_server`."""

    def __init__(self) -> None:
        self._connection, theirs = socket.socketpair()
        paths = f"{PATHS}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "support.forking_server", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": paths},
            )
        self._ends = dict[int, int]()
        self._begun: int | None = None

    def begin(self, told: Mapping[str, object], streams: Sequence[int]) -> int:
        send(self._connection, dict(told), streams)
        while self._begun is None:
            self._hear()
        pid, self._begun = self._begun, None
        return pid

    def end_of(self, pid: int, timeout: float | None) -> int | None:
        """The exit status of a process; None if it is not known after these seconds."""
        deadline = None if timeout is None else time.monotonic() + timeout
        for left in _left(deadline):
            if pid in self._ends:
                return self._ends[pid]
            if not select.select([self._connection], [], [], left)[0]:
                return None
            self._hear()
        return None

    def _hear(self) -> None:
        message, _ = receive(self._connection)
        if "ended" in message:
            self._ends[message["ended"]] = message["code"]
        else:
            self._begun = message["pid"]


def _left(deadline: float | None) -> Iterator[float | None]:
    while True:
        yield None if deadline is None else max(0.0, deadline - time.monotonic())
