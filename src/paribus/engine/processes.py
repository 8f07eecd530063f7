"""Processes on Linux: their signals and threads, and their end, with their parent or for want of memory."""

import ctypes
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

STOPPING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
"""Signals by which users and schedulers end processes."""
PR_SET_PDEATHSIG = 1
OOM_SCORE = Path("/proc/self/oom_score_adj")
"""File with the OOM score adjustment of this process, in thousandths of all memory."""
_ADDED_OOM_SCORE, _HIGHEST_OOM_SCORE = 300, 1000
VMSTAT = Path("/proc/vmstat")
"""File with the kernel's counters, of which one counts kills for want of memory and no other signal 9."""
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
"""Variables of the environment for the threads of OpenMP, MKL and OpenBLAS; where they differ, PyTorch heeds MKL's."""


def on_stop(handler: Callable[[int, FrameType | None], object]) -> None:
    """Install `handler` for the signals that end processes, except for ignored ones, as under nohup."""
    for number in STOPPING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def interrupt(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, as Ctrl-C does."""
    raise KeyboardInterrupt


def die_with_parent(parent: int | None = None) -> None:
    """Have Linux kill this process when its parent ends, so that nobody works under a claim that nobody holds.

    `parent` is the number of the parent, where it is known: if that ended before this call, this process ends too.
    """
    if sys.platform == "linux":
        parent = parent or os.getppid()
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)


def signal_on_thread_exit(number: signal.Signals) -> Callable[[], None]:
    """Function for a child to call before it becomes another program: Linux sends it `number` when this thread ends."""
    library, starter = ctypes.CDLL(None), os.getpid()

    def request_signal() -> None:
        if sys.platform == "linux":
            library.prctl(PR_SET_PDEATHSIG, number)
            if os.getppid() != starter:
                os._exit(1)

    return request_signal


def die_before_starter(score: Path = OOM_SCORE) -> None:
    """Raise the OOM score of this process and its children: Linux then kills them for want of memory before the parent.

    The parent says what ended this process, and has other runs.
    """
    with suppress(OSError, ValueError):  # another system, or a container that hides it
        higher = min(int(score.read_text(encoding="ascii")) + _ADDED_OOM_SCORE, _HIGHEST_OOM_SCORE)
        score.write_text(str(higher), encoding="ascii")


def ignore_requests() -> None:
    """Ignore the signals by which schedulers ask jobs for a checkpoint, here and in children.

    SLURM may send them to every process of a job. A training handles SIGUSR1 itself; SIGUSR2 is submitit's own, for the
    process that it has started.
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
