"""How long a checkpoint holds up training, and how long it is written beside it."""

import time

from loops.shapes import CPU, GPU, configuration

from acceptance.given import Answer, Given
from acceptance.stepping import batches, stepper, synchronize
from paribus.training.checkpoint import Checkpoints, take_snapshot
from paribus.training.metrics import Spent


def measure(given: Given) -> Answer:
    """Seconds of the copy to the host, of writing it, and bytes."""
    shape = CPU["demo"] if given.tiny else GPU["468m"]
    config = configuration(shape, 10, given.device, "training.micro_batch=2", "training.global_batch=2")
    stepped = stepper(config.model, shape.vocab_size, config.training, given.torch_device)
    for batch in batches(2, shape.context_length, shape.vocab_size, 2):
        stepped.step(batch, 1e-4)
    synchronize(given.torch_device)
    began = time.perf_counter()
    snapshot = take_snapshot(stepped.prepared.model, stepped.prepared.optimizer, main=True)
    copied = time.perf_counter()
    assert snapshot is not None
    Checkpoints(given.work, frozenset({2}), {}).save(2, snapshot, Spent())
    written = time.perf_counter()
    size = sum(file.stat().st_size for file in (given.work / "step_00000002").iterdir())
    numbers = {"copied s": copied - began, "written beside training s": written - copied, "GB": size / 1e9}
    return Answer(numbers)
