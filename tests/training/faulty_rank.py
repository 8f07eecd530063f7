"""A process of a training in which process 1 fails as the environment's FAULT says, one of FAULTS."""

import atexit
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from paribus.training import checkpoint
from paribus.training.data import Batch
from paribus.training.step import Stepper
from paribus.training.train import main

GROUP = Path(sys.argv[1])
accumulate, write = Stepper._accumulate, checkpoint._write_shard


def run_out_of_memory(self: Stepper, batch: Batch) -> Any:
    """Memory runs out at step 60 with more than one context at once."""
    if batch.step == 60 and self.micro_batch > 1:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
    return accumulate(self, batch)


def fail(self: Stepper, batch: Batch) -> Any:
    """It fails at step 3, and says when in the directory of its group."""
    if batch.step == 2:
        (GROUP / "failed_at").write_text(str(time.monotonic()))
        raise RuntimeError("an illegal memory access")
    return accumulate(self, batch)


def write_and_be_killed(partial: Path, *rest: Any) -> Any:
    """It is killed, once, when it has written its rows of the second checkpoint."""
    written, was_killed = write(partial, *rest), GROUP.with_name("was_killed")
    if partial.name.startswith("step_00000050") and not was_killed.exists():
        was_killed.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return written


FAULTS: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "out_of_memory": (Stepper, "_accumulate", run_out_of_memory),
    "stuck": (Stepper, "_accumulate", fail),
    "sharded_killed": (checkpoint, "_write_shard", write_and_be_killed),
}

if __name__ == "__main__":
    if os.environ["FAULT"] == "stuck":
        atexit.register(time.sleep, 60)  # longer than anybody waits for the end of a process
    if os.environ["RANK"] == "1":
        setattr(*FAULTS[os.environ["FAULT"]])
    sys.exit(main())
