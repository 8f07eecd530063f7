"""How the process of a stage begins: forked by a server that has its imports, or on its own.

On its own where a stage says so (`Stage.imports`, `Stage.online`), and where there is no server to be: on systems other
than Linux, and in a thread, with which a server would end.
"""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

from paribus.pipeline.making.fork_server import receive, send
from paribus.stage import OFFLINE
from paribus.store.provenance import Code

SECONDS_BETWEEN_CHECKS = 1.0
RUN_STAGE = "import sys; from paribus.pipeline.fork_server import run_stage; sys.exit(run_stage())"
SERVE_FORKS = "import sys; from paribus.pipeline.fork_server import serve_forks; sys.exit(serve_forks())"


class Child(Protocol):
    """The process of a stage, at the head of a session and a group of its own."""

    @property
    def pid(self) -> int:
        """Its number, and that of its group."""

    def poll(self) -> int | None:
        """How it ended: its exit status, or the negative number of a signal; None while it runs."""

    def wait(self) -> int:
        """The same once it has ended."""

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""


@dataclass(frozen=True)
class Job:
    """What a child is told."""

    fields: Mapping[str, Any]
    """JSON: the stage, its configuration and places."""
    environment: Mapping[str, str]
    visible: Mapping[str, str]
    """Added to the environment: which devices it sees, which may differ from stage to stage."""
    imports: Sequence[str] = ()
    later: Sequence[str] = ()


@dataclass(frozen=True)
class Outlets:
    """File descriptors that a child writes to."""

    channel: int
    log: int


def start_child(job: Job, outlets: Outlets, check: Callable[[], None]) -> Child:
    """The process of a job; `check` is called every second while it begins, and what it raises ends it."""
    forked = bool(job.imports) and sys.platform == "linux"
    if forked and threading.current_thread() is threading.main_thread():
        with suppress(OSError, EOFError):
            return _server(os.getpid(), tuple(sorted(job.environment.items())), _digest(job)).fork(job, outlets, check)
        _server.cache_clear()
    return _on_its_own(job, outlets)


def _on_its_own(job: Job, outlets: Outlets) -> Child:
    child = subprocess.Popen(
        [sys.executable, "-c", RUN_STAGE, str(outlets.channel)],
        stdin=subprocess.PIPE,
        stdout=outlets.log,
        stderr=outlets.log,
        pass_fds=[outlets.channel],
        start_new_session=True,
        env={**job.environment, **job.visible},
    )
    # One that died already is heard of by whoever waits for it.
    with suppress(BrokenPipeError), child.stdin as told:  # type: ignore[union-attr]
        told.write(json.dumps(job.fields).encode())
    return child


def _digest(job: Job) -> str:
    return Code.from_json(job.fields["code"]).digest


@lru_cache(maxsize=1)
def _server(process: int, environment: tuple[tuple[str, str], ...], code: str) -> "_ForkServer":
    """The server of this process, of what its children inherit; a fork of this process has none yet."""
    return _ForkServer.start(dict(environment))


@dataclass(eq=False)
class _ForkServer:
    """The other end of `making/fork_server.py`, which has one child at a time."""

    process: subprocess.Popen[bytes]
    connection: socket.socket

    @classmethod
    def start(cls, environment: Mapping[str, str]) -> "_ForkServer":
        """A server with an environment, in a session of its own: a terminal's Ctrl-C is not for it."""
        ours, theirs = socket.socketpair()
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-c", SERVE_FORKS, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
                env={**environment, **OFFLINE},
            )
        return cls(process, ours)

    def __del__(self) -> None:
        """Nobody asks any more: it ends by itself, or with its child."""
        self.connection.close()
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def fork(self, job: Job, outlets: Outlets, check: Callable[[], None]) -> Child:
        """A child; OSError or EOFError where the server is gone."""
        told = {
            "job": dict(job.fields),
            "environment": {**job.environment, **job.visible},
            "directory": str(Path.cwd()),
            "imports": list(job.imports),
            "later": list(job.later),
        }
        try:
            send(self.connection, told, [outlets.channel, outlets.log])
            while not select.select([self.connection], [], [], SECONDS_BETWEEN_CHECKS)[0]:
                check()
            return _Forked(self, receive(self.connection)[0]["pid"])
        except BaseException:
            # What was asked for may be on its way: with the server ends what it forked.
            self.process.kill()
            raise


@dataclass(eq=False)
class _Forked:
    """A child of the server, which tells how it ended."""

    server: _ForkServer
    pid: int
    _code: int | None = field(default=None, init=False)

    def poll(self) -> int | None:
        """As of `Child`."""
        if self._code is None and select.select([self.server.connection], [], [], 0)[0]:
            return self.wait()
        return self._code

    def wait(self) -> int:
        """As of `Child`; a child whose server was killed was killed by that."""
        if self._code is None:
            try:
                self._code = int(receive(self.server.connection)[0]["ended"])
            except (OSError, EOFError):
                self._code = -signal.SIGKILL
        return self._code

    def send_signal(self, number: int) -> None:
        """As of `Child`."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)
