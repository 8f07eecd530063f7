"""A process of a training in which memory runs out in process 1, at step 60 and with more than one context at once."""

import os
import sys
from typing import Any

from paribus.training.data import Batch
from paribus.training.step import Stepper
from paribus.training.train import main

accumulate = Stepper._accumulate


def short(self: Stepper, batch: Batch) -> Any:
    if os.environ["RANK"] == "1" and batch.step == 60 and self.micro_batch > 1:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
    return accumulate(self, batch)


if __name__ == "__main__":
    Stepper._accumulate = short  # type: ignore[method-assign]
    sys.exit(main())
