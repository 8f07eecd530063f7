"""Devices that a field of a configuration names, and batches that fit their memory.

Imports torch: import this module late.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import torch

from paribus.engine.gpus import unseen
from paribus.errors import ConfigurationError, OutOfMemoryError, is_out_of_memory


def usable_gpus() -> int:
    """Number of GPUs that PyTorch can compute on: 0 where the driver is too old for it, though it still counts them."""
    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def free_gpu_bytes(device: torch.device) -> int:
    """Bytes of a GPU that this process may take.

    Memory that PyTorch caches is in use for the driver, and free for this process.
    """
    cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return int(torch.cuda.mem_get_info(device)[0]) + cached


def set_products(precision: str, device: torch.device, field: str) -> None:
    """Have this process multiply float32 matrices in TF32 where `precision` is tf32, else in full float32.

    ConfigurationError for TF32 on a CPU, which has none: its results would pass for those of a GPU. `field` is the
    config path of the precision.
    """
    if precision == "tf32" and device.type != "cuda":
        raise ConfigurationError(f"{field} is tf32, which GPUs have, and the device is {device}; take fp32")
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")


def expect_many_shapes() -> None:
    """Turn cuDNN's attention off in this process, for work with many shapes.

    On an H100 in bfloat16 PyTorch prefers it, and it takes some tenths of a second to plan each new shape. That is
    nothing in a training whose micro-batches are all alike, and far more than the work itself where every generated
    token, and every batch of prompts or pairs or documents, has a shape of its own.
    """
    torch.backends.cuda.enable_cudnn_sdp(False)


def resolve_device(device: str, field: str) -> torch.device:
    """Resolve `device`, the value of the config path `field`, to a device of this machine; a GPU has its index.

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
    # `torch.cuda.set_device` needs an index.
    return torch.device("cuda", index)


Item = TypeVar("Item")
Result = TypeVar("Result")


class BatchMemory:
    """Number of items that memory suffices for: later batches begin with the size that an earlier one was halved to."""

    def __init__(self, doing: str, smaller: str = "model.context_length") -> None:
        self._doing, self._smaller = doing, smaller
        """Words of the error: the work, and the field that makes it take less memory."""
        self._most: int | None = None

    def computed(
        self, compute: Callable[[Sequence[Item]], Result], batch: Sequence[Item]
    ) -> Iterator[tuple[Sequence[Item], Result]]:
        """Yield the parts of a batch with their results, a part being halved where memory is short.

        OutOfMemoryError where memory does not suffice for a single item.
        """
        size = len(batch) if self._most is None else self._most
        for start in range(0, len(batch), max(1, size)):
            yield from self._halved(compute, batch[start : start + size])

    def _halved(
        self, compute: Callable[[Sequence[Item]], Result], batch: Sequence[Item]
    ) -> Iterator[tuple[Sequence[Item], Result]]:
        failure: str | None = None
        try:
            result = compute(batch)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            failure = str(error)
        # Not within the handler: its error keeps alive the frames, and with them the tensors, of what did not fit.
        if failure is None:
            yield batch, result
            return
        if len(batch) == 1:
            raise OutOfMemoryError(
                f"{self._doing} ran out of memory with a single one at a time; give it a device with more, or take a "
                f"smaller {self._smaller} ({failure})"
            )
        middle = len(batch) // 2
        self._most = max(1, middle)
        for part in (batch[:middle], batch[middle:]):
            yield from self._halved(compute, part)


def batches(items: Sequence[Item], length: Callable[[Item], int], tokens: int) -> list[Sequence[Item]]:
    """Split `items`, the longest first, into batches of at most `tokens` tokens when padded to the first, or of one."""
    result, start = [], 0
    while start < len(items):
        rows = max(1, tokens // max(1, length(items[start])))
        result.append(items[start : start + rows])
        start += rows
    return result
