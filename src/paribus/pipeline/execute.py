"""Run one stage in a child process and turn however it ends into a result or a classified failure."""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from paribus.config.groups.execution import EngineConfig
from paribus.engine.gpus import CUBLAS
from paribus.engine.processes import STOPPING, THREADS, out_of_memory_kills
from paribus.errors import (
    FAILURE_CLASSES,
    FullDiskError,
    InfrastructureError,
    InterruptedRunError,
    OutOfMemoryError,
    ParibusError,
)
from paribus.pipeline.fork_server import receive, send
from paribus.stage import OFFLINE, StageListener, deliver
from paribus.store.claims import Claim
from paribus.store.provenance import Code

SPINS = "20000"
"""Turns an OpenMP thread waits at a barrier before it sleeps; the default collapses where cores are shared."""
SECONDS_UNTIL_SIGNALLED = 0.5
"""Whoever stops a whole job signals this process too, which then ends as interrupted and not as failed."""
SECONDS_UNTIL_ANNOUNCED = 1.0
SECONDS_BETWEEN_CHECKS = 1.0
RUN_STAGE = "import sys; from paribus.pipeline.fork_server import run_stage; sys.exit(run_stage())"
SERVE_FORKS = "import sys; from paribus.pipeline.fork_server import serve_forks; sys.exit(serve_forks())"


def execute(
    job: dict[str, Any],
    engine: EngineConfig,
    held: Claim,
    log: Path,
    listener: StageListener,
    *,
    environment: Mapping[str, str] | None = None,
    imports: Sequence[str] = (),
    preload: Sequence[str] = (),
) -> Any:
    """The stage's result. Raises the failure the child reported, or one made from how it died.

    `environment` is added to that of the child. `imports` are modules that the stage computes with, `preload` those of
    stages after it, which are imported beside it. Where this process is interrupted the child is asked to end, by
    SIGTERM, and heard until it has or `engine.grace_seconds` are over. SIGUSR1 is passed on to it.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    reading, writing = os.pipe()
    killed_before = out_of_memory_kills()
    with _checkpoint_requests() as passed_on, os.fdopen(reading, "rb", buffering=0) as channel:
        try:
            job = job | {"claim": {"path": str(held.path), "token": held.token, "lease": held.lease}}
            with log.open("ab") as output:
                streams = writing, output.fileno()
                begun = Job(job, child_environment(engine), dict(environment or {}), streams, imports, preload)
                child = start_child(begun, held.watch)
        finally:
            os.close(writing)
        try:
            passed_on(child)
            answer = _listen(channel, listener, held.watch)
        except BaseException as error:
            try:
                # After any other error another process may have the work: nothing more may be written there.
                if isinstance(error, KeyboardInterrupt | SystemExit):
                    _ask_to_end(child, channel, listener, engine.grace_seconds)
            finally:
                _kill_group(child)
                child.wait()
            raise
    code = child.wait()
    _kill_group(child)
    return _conclude(answer, code, log, out_of_memory_kills() - killed_before)


def child_environment(engine: EngineConfig) -> dict[str, str]:
    """The environment of a stage's process: this one's, with the threads of numerical libraries."""
    threads = str(engine.threads or os.cpu_count() or 1)
    fixed = dict.fromkeys(THREADS, threads)
    fixed |= {"PYTHONHASHSEED": "0", "TOKENIZERS_PARALLELISM": "false", "GOMP_SPINCOUNT": SPINS}
    fixed["PYTHONIOENCODING"] = "utf-8:backslashreplace"
    return {**os.environ, **fixed, **CUBLAS}


@contextmanager
def _checkpoint_requests() -> Iterator[Callable[["Child"], object]]:
    """Ignore SIGUSR1 in the block, and pass it on to a child as soon as the given function is called with one.

    Where a launcher has a use of its own for it, or this is no main thread, it is left alone.
    """
    unused = signal.getsignal(signal.SIGUSR1) in (signal.SIG_DFL, signal.SIG_IGN)
    if not unused or threading.current_thread() is not threading.main_thread():
        yield lambda child: None
        return
    # Ignored from the start of the child on, which inherits it: until it heeds the signal that would end it.
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    try:
        yield lambda child: signal.signal(signal.SIGUSR1, lambda number, _: child.send_signal(number))
    finally:
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)


def _ask_to_end(child: "Child", channel: Any, listener: StageListener, grace: float) -> None:
    """Send SIGTERM and hear the child out, for at most `grace` seconds; a further interruption leaves at once.

    One that comes before the user was told is the same once more: a terminal that is closed sends two, and whoever
    ends a job may signal processes and their groups.
    """
    if child.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGTERM)
    began, announced = time.monotonic(), False

    def check() -> None:
        nonlocal announced
        waited = time.monotonic() - began
        if waited > grace:
            raise TimeoutError
        if waited > SECONDS_UNTIL_ANNOUNCED and not announced:
            announced = True
            with suppress(OSError):
                listener.message(
                    f"waiting up to {grace:g} s (engine.grace_seconds) for the stage to end, which a training does "
                    "with a checkpoint; interrupt once more to end it at once"
                )

    with suppress(TimeoutError):
        while True:
            try:
                # A terminal that is gone must not cost the child its last checkpoint.
                _listen(channel, listener, check, ignored=(OSError,))
            except (KeyboardInterrupt, SystemExit):
                if announced:
                    raise
                continue
            return


def _kill_group(child: "Child") -> None:
    """Kill a child and the processes that it started: helpers of Ray outlive a killed one by a minute."""
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)


def _listen(
    channel: Any, listener: StageListener, check: Callable[[], None], *, ignored: tuple[type[Exception], ...] = ()
) -> dict[str, Any] | None:
    """The child's last message, None when it died without one; `check` is called every second at least.

    Of what the listener raises, `ignored` ends nothing.
    """
    pending = b""
    answer: dict[str, Any] | None = None
    while True:
        ready, _, _ = select.select([channel], [], [], SECONDS_BETWEEN_CHECKS)
        check()
        if not ready:
            continue
        chunk = channel.read(65_536)
        if not chunk:
            return answer
        *lines, pending = (pending + chunk).split(b"\n")
        for line in lines:
            # An interruption may have taken the beginning of this line, which then is no JSON.
            with suppress(json.JSONDecodeError, *ignored):
                message = json.loads(line)
                if message["type"] in ("done", "failed"):
                    answer = message
                deliver(message, listener)


def _conclude(answer: dict[str, Any] | None, code: int, log: Path, memory_kills: int) -> Any:
    if answer is not None and answer["type"] == "done":
        return answer["result"]
    if answer is not None and answer["full_disk"]:
        raise FullDiskError(answer["message"])
    if answer is not None:
        cls: type[ParibusError] = FAILURE_CLASSES[answer["class"]]
        if cls is InterruptedRunError:
            time.sleep(SECONDS_UNTIL_SIGNALLED)
            cls = InfrastructureError
        raise cls(f"{answer['message']}\n  (log: {log})" if cls is InfrastructureError else answer["message"])
    if code == -signal.SIGKILL and memory_kills > 0:
        raise OutOfMemoryError(
            f"the kernel killed the process for want of memory (signal 9; log: {log}); a training takes less with a "
            "smaller training.micro_batch"
        )
    name = signal.Signals(-code).name if code < 0 else f"exit status {code}"
    if -code in STOPPING:
        time.sleep(SECONDS_UNTIL_SIGNALLED)
    raise InfrastructureError(f"the process died without a word: {name} (log: {log})")


# How the process of a stage begins: forked by a server that has its imports, or on its own. On its own where a stage
# says so (`Stage.imports`, `Stage.online`), and where there is no server to be: on systems other than Linux, and in a
# thread, with which a server would end.
@dataclass(frozen=True)
class Job:
    """A stage for a child to run, and how it begins."""

    fields: Mapping[str, Any]
    """JSON: the stage, its configuration and places."""
    environment: Mapping[str, str]
    visible: Mapping[str, str]
    """Added to the environment: which devices it sees, which may differ from stage to stage."""
    streams: tuple[int, int]
    """File descriptors of the channel and the log, which it writes to."""
    imports: Sequence[str] = ()
    preload: Sequence[str] = ()


def start_child(job: Job, check: Callable[[], None]) -> "Child":
    """The process of a job; `check` is called every second while it begins, and what it raises ends it."""
    forked = bool(job.imports) and sys.platform == "linux"
    if forked and threading.current_thread() is threading.main_thread():
        with suppress(OSError, EOFError):
            code = Code(**job.fields["code"]).digest
            return _server(os.getpid(), tuple(sorted(job.environment.items())), code).fork(job, check)
        _server.cache_clear()
    channel, log = job.streams
    child = subprocess.Popen(
        [sys.executable, "-c", RUN_STAGE, str(channel)],
        stdin=subprocess.PIPE,
        stdout=log,
        stderr=log,
        pass_fds=[channel],
        start_new_session=True,
        env={**job.environment, **job.visible},
    )
    # Whoever waits for the child learns that it died already.
    with suppress(BrokenPipeError), child.stdin as stream:  # type: ignore[union-attr]
        stream.write(json.dumps(job.fields).encode())
    return child


@lru_cache(maxsize=1)
def _server(process: int, environment: tuple[tuple[str, str], ...], code: str) -> "_ForkServer":
    """The server of this process, of what its children inherit; a fork of this process has none yet."""
    return _ForkServer.start(dict(environment))


@dataclass(eq=False)
class _ForkServer:
    """The other end of `fork_server`, which has one child at a time."""

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
        """End the server, and with it its child."""
        self.connection.close()
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def fork(self, job: Job, check: Callable[[], None]) -> "_Forked":
        """Fork a child; OSError or EOFError where the server is gone."""
        request = {
            "job": dict(job.fields),
            "environment": {**job.environment, **job.visible},
            "directory": str(Path.cwd()),
            "imports": list(job.imports),
            "preload": list(job.preload),
        }
        try:
            send(self.connection, request, job.streams)
            while not select.select([self.connection], [], [], SECONDS_BETWEEN_CHECKS)[0]:
                check()
            return _Forked(self, receive(self.connection)[0]["pid"])
        except BaseException:
            # The child may have begun: it ends with the server.
            self.process.kill()
            raise


@dataclass(eq=False)
class _Forked:
    """A child of the server, which tells how it ended; as far as it goes like `Popen`."""

    server: _ForkServer
    pid: int
    _code: int | None = field(default=None, init=False)

    def poll(self) -> int | None:
        if self._code is None and select.select([self.server.connection], [], [], 0)[0]:
            return self.wait()
        return self._code

    def wait(self) -> int:
        """Return the exit status, or the negative number of a signal; a server that was killed took its child along."""
        if self._code is None:
            try:
                self._code = int(receive(self.server.connection)[0]["ended"])
            except (OSError, EOFError):
                self._code = -signal.SIGKILL
        return self._code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)


Child = subprocess.Popen[bytes] | _Forked
"""The process of a stage, at the head of a session and a group of its own."""
