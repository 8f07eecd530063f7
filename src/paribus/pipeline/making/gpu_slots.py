"""Which GPUs the process of a stage gets: as many as it needs, and none that another job on this machine uses."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from paribus.config.groups.embedding import MiniLMEmbedder, TransformersEmbedder
from paribus.config.schema import RunConfig
from paribus.engine.gpus import VISIBLE, reserved, visible_gpus
from paribus.pipeline.making.visible_devices import visible_devices
from paribus.pipeline.stages import named

SHARED = ("auto", "cuda", "gpu")
"""Devices that leave the choice of the GPU to paribus; who names one, as cuda:1, shares it himself."""


@contextmanager
def gpu_slots(stage: str, config: RunConfig, say: Callable[[str], None]) -> Iterator[Mapping[str, str]]:
    """The environment in which a stage sees the GPUs that are its own until the block ends; empty without GPUs.

    ConfigurationError when the machine has fewer than the stage needs.
    """
    device, count = _need(stage, config)
    gpus = visible_gpus() if device in SHARED else []
    # What computes on a CPU, since PyTorch is built for that, is to wait for no GPU and to keep none from others.
    if not gpus or (device == "auto" and not visible_devices("torch")):
        yield {}
        return
    noun = "GPUs" if count != 1 else "GPU"
    waiting = f"[dim]{named(stage)} waits for {count or 'all'} {noun}: other jobs on this machine have them[/dim]"
    with reserved(count, gpus, Path(config.engine.gpu_locks), lambda: say(waiting)) as taken:
        yield {VISIBLE: ",".join(gpu.name for gpu in taken)}


def _need(stage: str, config: RunConfig) -> tuple[str, int]:
    """The device a stage is configured for and how many of the kind, 0 for all; `cpu` where it needs none."""
    if stage == "training":
        # On several nodes the scheduler gives whole ones.
        return (config.training.device, config.training.processes) if config.training.nodes == 1 else ("cpu", 0)
    if stage == "embeddings" and isinstance(config.embedder, TransformersEmbedder | MiniLMEmbedder):
        return config.embedder.device, 1
    devices = {
        "evaluation": config.evaluation.device,
        "finetuning": config.training.device,
        # Whether auto finds a GPU is for faiss to say, which a search on the CPU should not wait for.
        "neighbours": "gpu" if config.neighbours.device == "gpu" else "cpu",
    }
    return devices.get(stage, "cpu"), 1
