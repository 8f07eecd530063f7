"""The device that a field of a configuration means."""

import re

import torch

from paribus.engine.gpus import unseen
from paribus.errors import ConfigurationError


def usable_gpus() -> int:
    """How many GPUs PyTorch can compute on: none where the driver is too old for it, though it still counts them."""
    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def free_gpu_bytes(device: torch.device) -> int:
    """Bytes of a GPU that this process may take.

    What PyTorch keeps of tensors that are gone is taken for the driver, and free for this process.
    """
    cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return int(torch.cuda.mem_get_info(device)[0]) + cached


def set_products(precision: str, device: torch.device, field: str) -> None:
    """Let this process multiply float32 matrices in TF32 from here on, where `precision` is that, or exactly.

    ConfigurationError for TF32 on a CPU, which has none: what it gives would pass for that of a GPU. `field` is the
    config path of the precision.
    """
    if precision == "tf32" and device.type != "cuda":
        raise ConfigurationError(f"{field} is tf32, which GPUs have, and the device is {device}; take fp32")
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")


def expect_many_shapes() -> None:
    """Let this process attend by kernels that take any shape, from here on.

    On an H100 in bfloat16 PyTorch takes cuDNN's attention first, which plans every shape that it meets, in some tenths
    of a second: nothing in a training whose micro-batches are all alike, and far more than the work itself where every
    token that is generated, and every batch of prompts or pairs or documents, has a shape of its own.
    """
    torch.backends.cuda.enable_cudnn_sdp(False)


def resolve_device(device: str, field: str) -> torch.device:
    """`device`, the value of the config path `field`, as a device that is there; a GPU has its index.

    ConfigurationError for one that is not there, and for `auto` where the driver lists GPUs that PyTorch does not see.
    """
    if device == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda", 0)
        if problem := unseen(torch.__version__, torch.version.cuda):
            raise ConfigurationError(f"{field}: {problem}")
        return torch.device("cpu")
    match = re.fullmatch(r"cpu|cuda(?::(\d+))?", device)
    if match is None:
        raise ConfigurationError(f"{field} is {device!r}; known are auto, cpu, cuda and cuda:N")
    if device == "cpu":
        return torch.device("cpu")
    index, count = int(match[1] or 0), usable_gpus()
    if index >= count:
        raise ConfigurationError(f"{field} is {device!r}, but {count} CUDA devices are visible; try auto")
    # Without an index `torch.cuda.set_device` takes it for none.
    return torch.device("cuda", index)
