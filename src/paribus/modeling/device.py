"""The device that a field of a configuration means."""

import re

import torch

from paribus.errors import ConfigurationError


def resolve_device(device: str, field: str) -> torch.device:
    """`device`, the value of the config path `field`, as a device that is there; ConfigurationError otherwise."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    match = re.fullmatch(r"cpu|cuda(?::(\d+))?", device)
    if match is None:
        raise ConfigurationError(f"{field} is {device!r}; known are auto, cpu, cuda and cuda:N")
    count = torch.cuda.device_count() if device != "cpu" else 1
    if int(match[1] or 0) >= count:
        raise ConfigurationError(f"{field} is {device!r}, but {count} CUDA devices are visible; try auto")
    return torch.device(device)
