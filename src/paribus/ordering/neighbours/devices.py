"""The GPUs on which an exact search compares vectors."""

from typing import Any

from paribus.config.groups.embedding import NeighboursConfig
from paribus.config.units import format_size
from paribus.engine.gpus import visible_gpus
from paribus.errors import ConfigurationError
from paribus.ordering.neighbours.blocks import DOCUMENTS_A_BLOCK
from paribus.ordering.neighbours.ranking import Vectors


def search_devices(config: NeighboursConfig, base: Vectors) -> list[Any]:
    """PyTorch's devices for the shard `base`; none where it is searched on CPUs, which finds the same.

    `auto` takes GPUs where `neighbours.index` is flat, and they have room. Raises ConfigurationError for `gpu` where
    there is none or no room.
    """
    insists = config.device == "gpu"
    if not len(base) or not (insists or (config.device == "auto" and config.index == "flat" and visible_gpus())):
        return []
    import torch

    from paribus.modeling.device import free_gpu_bytes, usable_gpus
    from paribus.ordering.neighbours.device_shard import bytes_needed

    devices = [torch.device("cuda", number) for number in range(usable_gpus())]
    if insists and not devices:
        raise ConfigurationError("neighbours.device is gpu, and PyTorch sees none here; use auto or cpu")
    free = min(map(free_gpu_bytes, devices), default=0)
    needed = bytes_needed(len(base), base.shape[1], DOCUMENTS_A_BLOCK)
    if needed <= free:
        return devices
    if insists:
        raise ConfigurationError(
            f"neighbours.shard_documents: {len(base):,} vectors take {format_size(needed)} of a GPU, and "
            f"{format_size(free)} are free; lower it, or use neighbours.device=cpu"
        )
    return []
