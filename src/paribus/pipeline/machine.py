"""What a plan takes the training device to be, without importing torch."""

import os
from pathlib import Path

from paribus.config.groups.training import TrainingConfig

NVIDIA = Path("/proc/driver/nvidia/version")
"""There where NVIDIA's driver is loaded."""


def has_gpu(training: TrainingConfig, driver: Path = NVIDIA) -> bool:
    """Whether a run would train on a GPU: as configured, else whether one seems to be there and visible."""
    if training.device != "auto":
        return training.device != "cpu"
    return driver.exists() and os.environ.get("CUDA_VISIBLE_DEVICES") not in ("", "-1")
