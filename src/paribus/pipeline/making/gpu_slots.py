"""Which GPUs the process of a stage gets: as many as it needs, and none that another job on this machine uses."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from paribus.config.schema import RunConfig
from paribus.engine.gpus import ORDER, VISIBLE, reserved, visible_gpus
from paribus.pipeline.making.visible_devices import visible_devices
from paribus.pipeline.stages import STAGES, named

SHARED = ("auto", "cuda", "gpu")
"""Devices that leave the choice of the GPU to paribus; who names one, as cuda:1, shares it himself."""


@contextmanager
def gpu_slots(stage: str, config: RunConfig, say: Callable[[str], None]) -> Iterator[Mapping[str, str]]:
    """The environment in which a stage sees the GPUs that are its own until the block ends; empty without GPUs.

    ConfigurationError when the machine has fewer than the stage needs.
    """
    device = STAGES[stage].device(config)
    count = None if device is None or device.value not in SHARED else device.gpus
    gpus = [] if count is None else visible_gpus()
    # What computes on a CPU, since PyTorch is built for that, is to wait for no GPU and to keep none from others.
    if device is None or count is None or not gpus or (device.value == "auto" and not visible_devices()):
        yield {}
        return
    if device.fewer_do:
        count = min(count, len(gpus))
    noun = "GPUs" if count != 1 else "GPU"
    waiting = f"[dim]{named(stage)} waits for {count or 'all'} {noun}: other jobs on this machine have them[/dim]"
    with reserved(count, gpus, Path(config.engine.gpu_locks), lambda: say(waiting)) as taken:
        order = {name: value for name, value in ORDER.items() if name not in os.environ}
        yield {VISIBLE: ",".join(gpu.name for gpu in taken), **order}
