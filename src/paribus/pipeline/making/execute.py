"""Run one stage in a child process and turn however it ends into a result or a classified failure."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from paribus.config.groups.execution import EngineConfig
from paribus.engine.process_ends import out_of_memory_kills
from paribus.errors import (
    FAILURE_CLASSES,
    FullDiskError,
    InfrastructureError,
    OutOfMemoryError,
    ParibusError,
)
from paribus.store.claim import Claim

SPINS = "20000"
"""Turns an OpenMP thread waits at a barrier before it sleeps; the default collapses where cores are shared."""
STOPPING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
"""Signals by which users and schedulers end processes."""
SECONDS_UNTIL_SIGNALLED = 0.5
SECONDS_TO_STOP = 10.0
SECONDS_BETWEEN_CHECKS = 1.0


class Listener(Protocol):
    """Who hears what the child says while it runs."""

    def progress(self, done: float, total: float, unit: str, doing: str, detail: str) -> None:
        """The stage finished `done` of `total` units; `detail` says what else it has done."""

    def metric(self, name: str, value: float, step: int) -> None:
        """The stage reported a number of the run."""

    def message(self, text: str) -> None:
        """The stage said a line."""


def execute(
    job: dict[str, Any],
    engine: EngineConfig,
    held: Claim,
    log: Path,
    listener: Listener,
    *,
    environment: Mapping[str, str] | None = None,
) -> Any:
    """The stage's result. Raises the failure the child reported, or one made from how it died.

    `environment` is added to that of the child.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    reading, writing = os.pipe()
    with log.open("ab") as output:
        child = subprocess.Popen(
            [sys.executable, "-m", "paribus.pipeline.making.child", str(writing)],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            pass_fds=[writing],
            start_new_session=True,
            env={**child_environment(engine), **(environment or {})},
        )
    os.close(writing)
    killed_before = out_of_memory_kills()
    with _stopped(child), os.fdopen(reading, "rb", buffering=0) as channel:
        _send(child, job | {"claim": {"path": str(held.path), "token": held.token, "lease": held.lease}})
        answer = _listen(channel, held, listener)
    code = child.wait()
    _sweep(child)
    return _conclude(answer, code, log, out_of_memory_kills() - killed_before)


def child_environment(engine: EngineConfig) -> dict[str, str]:
    """The environment of a stage's process: this one's, with the threads of numerical libraries."""
    threads = str(engine.threads or os.cpu_count() or 1)
    fixed = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), threads)
    fixed |= {
        "PYTHONHASHSEED": "0",
        "TOKENIZERS_PARALLELISM": "false",
        "GOMP_SPINCOUNT": SPINS,
        "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
    }
    return {**os.environ, **fixed}


def _send(child: subprocess.Popen[bytes], job: dict[str, Any]) -> None:
    if child.stdin is None:
        raise InfrastructureError("the child process has no standard input")
    try:
        child.stdin.write(json.dumps(job).encode())
        child.stdin.close()
    except BrokenPipeError:
        return


@contextmanager
def _stopped(child: subprocess.Popen[bytes]) -> Iterator[None]:
    """Leave no child behind, however the block ends; a clean end waits for it."""
    try:
        yield
    except BaseException:
        _signal(child, signal.SIGTERM)
        try:
            child.wait(SECONDS_TO_STOP)
        except subprocess.TimeoutExpired:
            _signal(child, signal.SIGKILL)
            child.wait()
        _sweep(child)
        raise


def _signal(child: subprocess.Popen[bytes], number: signal.Signals) -> None:
    if child.poll() is None:
        os.killpg(child.pid, number)


def _sweep(child: subprocess.Popen[bytes]) -> None:
    """Kill what a dead child started and left behind: helpers of Ray outlive a killed one by a minute."""
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)


def _listen(channel: Any, held: Claim, listener: Listener) -> dict[str, Any] | None:
    """The child's last word, None when it died without one."""
    pending = b""
    answer: dict[str, Any] | None = None
    while True:
        ready, _, _ = select.select([channel], [], [], SECONDS_BETWEEN_CHECKS)
        held.watch()
        if not ready:
            continue
        chunk = channel.read(65_536)
        if not chunk:
            return answer
        *lines, pending = (pending + chunk).split(b"\n")
        for line in lines:
            answer = _hear(json.loads(line), listener) or answer


def _hear(message: dict[str, Any], listener: Listener) -> dict[str, Any] | None:
    kind = message.pop("type")
    if kind == "progress":
        listener.progress(**message)
    elif kind == "metric":
        listener.metric(message["name"], float(message["value"]), message["step"])
    elif kind == "message":
        listener.message(message["text"])
    else:
        return {"type": kind, **message}
    return None


def _conclude(answer: dict[str, Any] | None, code: int, log: Path, memory_kills: int) -> Any:
    if answer is not None and answer["type"] == "done":
        return answer["result"]
    if answer is not None and answer["full_disk"]:
        raise FullDiskError(answer["message"])
    if answer is not None:
        cls: type[ParibusError] = FAILURE_CLASSES[answer["class"]]
        raise cls(f"{answer['message']}\n  (log: {log})" if cls is InfrastructureError else answer["message"])
    if code == -signal.SIGKILL and memory_kills > 0:
        raise OutOfMemoryError(f"the kernel killed the process for want of memory (signal 9; log: {log})")
    name = signal.Signals(-code).name if code < 0 else f"exit status {code}"
    if -code in STOPPING:
        # Whoever stops a whole job signals this process too, which then ends as interrupted and not as failed.
        time.sleep(SECONDS_UNTIL_SIGNALLED)
    raise InfrastructureError(f"the process died without a word: {name} (log: {log})")
