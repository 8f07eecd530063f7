"""A process of a training of which process 1 is killed, once, when it has written its rows of the second checkpoint."""

import os
import signal
import sys
from pathlib import Path
from typing import Any

from paribus.training import checkpoint
from paribus.training.train import main

write = checkpoint._write_shard


def write_and_be_killed(partial: Path, *rest: Any) -> Any:
    written = write(partial, *rest)
    was_killed = partial.parent.with_name("was_killed")
    if os.environ["RANK"] == "1" and partial.name.startswith("step_00000050") and not was_killed.exists():
        was_killed.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return written


if __name__ == "__main__":
    checkpoint._write_shard = write_and_be_killed
    sys.exit(main())
