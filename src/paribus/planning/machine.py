"""What a plan takes the training device to be, without importing torch."""

import os
import platform
from dataclasses import replace
from pathlib import Path

from paribus.config.groups.training import TrainingConfig
from paribus.engine.gpus import visible_gpus
from paribus.store.provenance import gpu_names

NVIDIA = Path("/proc/driver/nvidia/version")
"""There where NVIDIA's driver is loaded."""
PROCESSORS = Path("/proc/cpuinfo")
"""Where Linux describes its processors."""


def trains_on_gpu(training: TrainingConfig, driver: Path = NVIDIA) -> bool:
    """Whether a run would train on a GPU: as configured, else whether one seems to be there and visible."""
    if training.device != "auto":
        return training.device != "cpu"
    return driver.exists() and os.environ.get("CUDA_VISIBLE_DEVICES") not in ("", "-1")


def counted(training: TrainingConfig) -> TrainingConfig:
    """With numbers of processes and nodes where it asks for all: one a visible GPU, and the nodes of the allocation."""
    gpus = len(visible_gpus()) if trains_on_gpu(training) else 0
    nodes = training.nodes or int(os.environ.get("SLURM_JOB_NUM_NODES", "1"))
    return replace(training, processes=training.processes or max(1, gpus), nodes=nodes)


def training_device_name(training: TrainingConfig, processors: Path = PROCESSORS) -> str:
    """Name of the device a run would train on, as the driver or the kernel gives it."""
    if trains_on_gpu(training):
        number = training.device.partition(":")[2]
        listed = gpu_names()
        place = int(number) if number.isdigit() else 0
        return listed[place] if place < len(listed) else training.device
    return next(iter(_named_processors(processors)), platform.processor() or platform.machine())


def _named_processors(file: Path) -> list[str]:
    """Names of the processors, one each; of ARM the kernel says none."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    pairs = (line.partition(":") for line in lines)
    return [value.strip() for name, _, value in pairs if name.strip() == "model name"]
