"""The processes that compile the kernels of a GPU beside a training."""

import atexit
import signal

from paribus.training.processes.requests import ASKED_BY


def start_compiler() -> None:
    """Start them, deaf to what asks a training for a checkpoint.

    Such a signal may be sent to all processes of a group or of a job. Killed by it, these would never answer, and the
    training would wait for them without end. What is sent meanwhile is heard afterwards.
    """
    from torch._inductor.async_compile import AsyncCompile  # takes seconds, which a CPU's training need not wait for

    before = signal.pthread_sigmask(signal.SIG_BLOCK, ASKED_BY)
    try:
        AsyncCompile.warm_pool()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    atexit.unregister(let_go)
    atexit.register(let_go)  # before PyTorch's own, as later


def let_go() -> None:
    """Let those leave that have nothing to compile.

    At its end PyTorch asks them to by SIGTERM, to which they are deaf, and from 2.15 on waits ten seconds for them.
    """
    from torch._inductor import async_compile
    from torch._inductor.compile_worker.subproc_pool import SubprocPool

    for pool in async_compile._pool_set:
        if isinstance(pool, SubprocPool) and pool.running:
            pool.quiesce()
