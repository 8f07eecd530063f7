"""Device, precision and memory: what a run computes on, said so that a user can change it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import DistributedDataParallelKwargs, InitProcessGroupKwargs

from paribus.config.groups.training import TrainingConfig
from paribus.errors import ConfigurationError, OutOfMemoryError, is_out_of_memory
from paribus.modeling.device import resolve_device

COLLECTIVE = timedelta(minutes=30)
"""How long the processes of a training may be apart in a step: one of them compiles, or is held up by its node.

Where one of them reads or writes, the others wait on the host (`training.processes.host`)."""


def resolve_precision(precision: str, device: torch.device) -> str:
    """`fp32` or `bf16`; `auto` is bf16 on a CUDA device that computes in it, fp32 elsewhere."""
    if precision != "auto":
        return precision
    if device.type != "cuda":
        return "fp32"
    with torch.cuda.device(device):
        return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "fp32"


def make_accelerator(training: TrainingConfig, processes: int = 1) -> tuple[Any, str]:
    """An `Accelerator` on the configured device, and the precision (`fp32` or `bf16`) it computes in.

    Weights, gradients and optimizer state are float32 either way. Raises ConfigurationError unless this is one of
    `processes` processes of a group: a launcher that starts too few or too many would change nothing but the speed, or
    train several models.
    """
    device = resolve_device(training.device, "training.device")
    if device.type == "cuda" and processes > 1:
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    precision = resolve_precision(training.precision, device)
    if device.type == "cuda":
        torch.cuda.set_device(device)
    accelerator = Accelerator(
        cpu=device.type == "cpu",
        # Else a variable of the environment decides, and every forward pass is under autocast.
        mixed_precision="no",
        kwargs_handlers=[
            DistributedDataParallelKwargs(
                gradient_as_bucket_view=True,
                # Else buckets are made anew after the first step, so that one after a resumption sums in another order.
                find_unused_parameters=training.deterministic,
            ),
            InitProcessGroupKwargs(timeout=COLLECTIVE),
        ],
    )
    if accelerator.num_processes != processes:
        raise ConfigurationError(
            f"the run trains in {processes} processes, but the environment asks for {accelerator.num_processes} "
            "(WORLD_SIZE); set training.processes instead of starting paribus with a distributed launcher"
        )
    return accelerator, precision


def device_name(device: torch.device) -> str:
    """Name of the device for the record: the GPU's model, or cpu."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"


@contextmanager
def explained_memory_errors(training: TrainingConfig) -> Iterator[None]:
    """Turn an allocation failure inside the block into an `OutOfMemoryError` that says what to change."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if is_out_of_memory(error):
            raise _out_of_memory(training, error) from error
        raise


def _out_of_memory(training: TrainingConfig, error: BaseException) -> OutOfMemoryError:
    smaller = max(1, min(training.micro_batch, training.global_batch) // 2)
    return OutOfMemoryError(
        f"training ran out of memory with training.micro_batch={training.micro_batch}; set "
        f"training.micro_batch={smaller}, which accumulates the same global batches in smaller pieces ({error})"
    )
