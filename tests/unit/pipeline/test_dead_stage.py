"""How a stage's process that died without a word is judged."""

import os
import signal
import threading
from pathlib import Path

import pytest

from paribus.errors import FullDiskError, InfrastructureError, NumericalError, OutOfMemoryError
from paribus.pipeline.making.execute import _conclude

LOG = Path("stage.log")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_process_that_somebody_stopped_alone_is_a_failure_of_this_run_alone(number: signal.Signals) -> None:
    with pytest.raises(InfrastructureError, match=f"died without a word: {number.name}"):
        _conclude(None, -number, LOG, memory_kills=0)


def test_where_the_whole_job_is_stopped_the_run_is_interrupted() -> None:
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            _conclude(None, -signal.SIGTERM, LOG, memory_kills=0)
    finally:
        signal.signal(signal.SIGINT, before)


def test_signal_nine_is_want_of_memory_only_where_the_kernel_counted_it() -> None:
    with pytest.raises(OutOfMemoryError):
        _conclude(None, -signal.SIGKILL, LOG, memory_kills=1)
    with pytest.raises(InfrastructureError, match="SIGKILL"):
        _conclude(None, -signal.SIGKILL, LOG, memory_kills=0)


def test_what_the_process_said_comes_first() -> None:
    said = {"type": "failed", "class": "numerical", "message": "the loss is NaN", "full_disk": False}
    with pytest.raises(NumericalError, match="the loss is NaN"):
        _conclude(said, -signal.SIGKILL, LOG, memory_kills=1)
    with pytest.raises(FullDiskError, match="the disk is full"):
        _conclude(said | {"class": "infrastructure", "message": "the disk is full", "full_disk": True}, 1, LOG, 0)
