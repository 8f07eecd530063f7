"""Processes on Linux: their signals, streams and threads, and their end, with their parent or for want of memory."""

import ctypes
import io
import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

STOPPING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
"""Signals by which users and schedulers end processes."""
PR_SET_PDEATHSIG = 1
OOM_SCORE = Path("/proc/self/oom_score_adj")
"""File with what a process is thought to take beyond what it takes, in thousandths of all memory."""
_ADDED_OOM_SCORE, _HIGHEST_OOM_SCORE = 300, 1000
VMSTAT = Path("/proc/vmstat")
"""Counters of the kernel. Somebody's kill ends a process by signal 9 too, and moves none of them."""
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
"""Variables of the environment, one of each library. Told apart, PyTorch takes as many as MKL may have."""


def on_stop(handler: Callable[[int, FrameType | None], object]) -> None:
    """Install `handler` for the signals that end processes, except for ignored ones, as under nohup."""
    for number in STOPPING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def interrupt(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, as Ctrl-C does."""
    raise KeyboardInterrupt


def guard_streams() -> list[OSError]:
    """Have standard streams escape unknown characters and drop what fails; return a list of the last error.

    So printing never decides how a run ends.
    """
    errors = list[OSError]()
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        # A stream that somebody replaced is theirs; None was closed before the start.
        if stream is not None and stream is getattr(sys, f"__{name}__"):
            buffer, at_once = io.BufferedWriter(_Outlet(stream.fileno(), errors)), stream.write_through
            guarded = io.TextIOWrapper(
                buffer, stream.encoding, "backslashreplace", line_buffering=stream.line_buffering or at_once
            )
            setattr(sys, name, guarded)
    return errors


class _Outlet(io.FileIO):
    """A file descriptor whose failed writes are dropped; `errors` holds the last one."""

    def __init__(self, descriptor: int, errors: list[OSError]) -> None:
        super().__init__(descriptor, "wb", closefd=False)
        self._errors = errors

    def write(self, data: Any, /) -> int:
        try:
            return os.write(self.fileno(), data)
        except BrokenPipeError:  # the reader has seen enough, as `head` does
            return len(data)
        except OSError as error:
            self._errors[:] = [error]
            return len(data)


def die_with_parent(parent: int | None = None) -> None:
    """Ask Linux to kill this process when its parent dies, so that nobody works under a claim nobody holds.

    `parent` is its number, where it was told: one that died while this process imported is no parent any more.
    """
    if sys.platform == "linux":
        parent = parent or os.getppid()
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)


def signalled_at_the_end_of_this(number: signal.Signals) -> Callable[[], None]:
    """Function for a process to call before it becomes another program: Linux sends `number` when this thread ends."""
    library, starter = ctypes.CDLL(None), os.getpid()

    def ask() -> None:
        if sys.platform == "linux":
            library.prctl(PR_SET_PDEATHSIG, number)
            if os.getppid() != starter:
                os._exit(1)

    return ask


def die_before_starter(score: Path = OOM_SCORE) -> None:
    """Have Linux kill this process, and those started from here, for want of memory before the one that started it.

    That one tells what ended this one; with it would end all its other runs.
    """
    with suppress(OSError, ValueError):  # another system, or a container that hides it
        higher = min(int(score.read_text(encoding="ascii")) + _ADDED_OOM_SCORE, _HIGHEST_OOM_SCORE)
        score.write_text(str(higher), encoding="ascii")


def ignore_requests() -> None:
    """Outlive the signals by which schedulers ask jobs for a checkpoint, as do the processes started from here.

    SLURM may send them to every process of a job. SIGUSR1 means a training, which heeds it itself; SIGUSR2 is
    submitit's own and means the process that it has started.
    """
    for number in (signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)


def end_with_starter() -> None:
    """End this worker of a pool when the process that started it is gone, also in the middle of its work.

    Workers are children of a server, which lives as long as one of them does; and each holds both ends of the queue
    that it waits at, so none learns by itself that nobody is left to want its results.
    """
    starter = multiprocessing.parent_process()
    if starter is not None:
        threading.Thread(target=_end_after, args=(starter.sentinel,), daemon=True).start()


def _end_after(sentinel: int) -> None:
    multiprocessing.connection.wait([sentinel])
    os.kill(os.getpid(), signal.SIGKILL)


def out_of_memory_kills(counters: Path = VMSTAT) -> int:
    """Processes that the kernel of this machine has killed for want of memory since it started.

    Limits of control groups, which schedulers set, count too. 0 where the system keeps no such counter.
    """
    if not counters.is_file():
        return 0
    lines = (line.split() for line in counters.read_text(encoding="ascii").splitlines())
    return next((int(value) for name, value in lines if name == "oom_kill"), 0)
