"""One measurement in a process of its own, held to some cores."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

BENCHMARKS = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True)
class Job:
    """What `peers.child` does: `kind` encode, strings or train, by the contestant's function and options.

    Encoding makes one pass over the first `limit` megabytes and then `passes` over `copies` of them.
    """

    kind: str
    function: str
    options: dict[str, Any]
    text: str
    vocabularies: str
    cores: int
    limit: float | None = None
    copies: int = 1
    passes: int = 5
    sample: float = 10.0
    vocab_size: int = 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a job: what the child says, or why there is nothing."""

    values: dict[str, Any]
    problem: str | None
    wall: float
    """Seconds from start to end of the process, less what it spent on anything but the job."""
    cpu: float


def available_cores() -> list[int]:
    """The cores of this process."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))


@contextmanager
def held_to(cores: int) -> Iterator[None]:
    """Processes started meanwhile run on the last `cores` cores only, where the system can do that."""
    before = available_cores()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, before[-cores:])
    try:
        yield
    finally:
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, before)


def environment(cores: int, **more: str) -> dict[str, str]:
    """This process's environment with the thread counts that libraries read from it."""
    names = ("RAYON_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    parallel = "true" if cores > 1 else "false"
    threads = dict.fromkeys(names, str(cores))
    path = os.pathsep.join(filter(None, [str(BENCHMARKS), os.environ.get("PYTHONPATH")]))
    return os.environ | threads | {"TOKENIZERS_PARALLELISM": parallel, "PYTHONPATH": path} | more


def run(job: Job, limit_s: float) -> Outcome:
    """Do a job in a fresh process; one that fails or takes longer than `limit_s` is reported, not raised."""
    with tempfile.TemporaryDirectory() as scratch:
        result = Path(scratch) / "result.json"
        command = [sys.executable, "-m", "peers.child", json.dumps(asdict(job)), str(result)]
        before, started = _children_cpu(), time.perf_counter()
        with held_to(job.cores):
            try:
                done = subprocess.run(
                    command, env=environment(job.cores), capture_output=True, text=True, timeout=limit_s, check=False
                )
            except subprocess.TimeoutExpired:
                return Outcome({}, f"more than {limit_s:.0f} s", limit_s, limit_s)
        wall, cpu = time.perf_counter() - started, _children_cpu() - before
        if done.returncode != 0 or not result.exists():
            last = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
            return Outcome({}, last[-1], wall, cpu)
        values: dict[str, Any] = json.loads(result.read_text())
        return Outcome(values, values.get("problem"), wall - values["aside"], cpu - values["aside_cpu"])


def _children_cpu() -> float:
    times = os.times()
    return times.children_user + times.children_system
