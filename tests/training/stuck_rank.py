"""A process of a training of which process 1 fails at step 3, and whose end takes longer than anybody waits.

It writes when it failed into the directory of its group.
"""

import atexit
import os
import sys
import time
from pathlib import Path
from typing import Any

from paribus.training.data import Batch
from paribus.training.step import Stepper
from paribus.training.train import main

accumulate = Stepper._accumulate


def failing(self: Stepper, batch: Batch) -> Any:
    if os.environ["RANK"] == "1" and batch.step == 2:
        (Path(sys.argv[1]) / "failed_at").write_text(str(time.monotonic()))
        raise RuntimeError("an illegal memory access")
    return accumulate(self, batch)


if __name__ == "__main__":
    atexit.register(time.sleep, 60)
    Stepper._accumulate = failing  # type: ignore[method-assign]
    sys.exit(main())
