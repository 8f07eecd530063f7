"""The largest micro-batch that fits into a GPU, found by trial: forward and backward passes of random tokens."""

from bisect import bisect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from accelerate.utils import release_memory

from paribus.errors import OutOfMemoryError, is_out_of_memory
from paribus.modeling.models import vocabulary_size
from paribus.training.processes.host import Host
from paribus.training.processes.parallel import Prepared

SPARE = 0.95
"""The share of a GPU's memory that trials may take: real batches cut memory into other pieces."""


def largest_fitting(start: int, share: int, fits: Callable[[int], bool]) -> int:
    """The largest divisor of `share` that `fits`, tried from the largest up to `start`, up or else down.

    `start` is none of them where it was found for a share of other processes. OutOfMemoryError where none fits.
    """
    sizes = [size for size in range(1, share + 1) if share % size == 0]
    place = bisect(sizes, start) - 1
    if fits(sizes[place]):
        while place + 1 < len(sizes) and fits(sizes[place + 1]):
            place += 1
        return sizes[place]
    for size in reversed(sizes[:place]):
        if fits(size):
            return size
    raise OutOfMemoryError(
        "not even one context fits into the GPU's memory in a trial step (training.micro_batch=0); set "
        "training.activation_checkpointing=true, or take a smaller model or model.context_length"
    )


def trial(accelerator: Any, host: Host, prepared: Prepared, size: int, *, share: int, length: int) -> bool:
    """Whether a micro-batch of `size` of the `share` contexts of a process fits, in every process of a training.

    Contexts have `length` tokens. What AdamW will hold is held meanwhile, and in a second pass, where a step has
    several micro-batches, the gradients of the first. No process waits for another in the passes, so that none that
    runs out of memory leaves others in a collective.
    """
    device, short = accelerator.device, False
    # Not what DDP wraps it in: its hooks sum nothing unless a forward pass of its own was before.
    loss = accelerator.unwrap_model(prepared.wrapped)
    torch.cuda.reset_peak_memory_stats(device)
    vocabulary = vocabulary_size(prepared.model)
    try:
        with _moments(prepared):
            # A generator of its own: what the training draws is not to depend on trials.
            random = torch.Generator(device).manual_seed(0)
            tokens = torch.randint(vocabulary, (size, length), generator=random, device=device)
            for _ in range(1 if size == share else 2):
                accelerator.backward(loss(tokens, tokens))
            short = torch.cuda.max_memory_reserved(device) > SPARE * torch.cuda.mem_get_info(device)[1]
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        short = True
    # Outside of the handler, whose error keeps the tensors alive.
    prepared.forget_gradients()
    release_memory()
    return not host.agreed((short,))[0]


@contextmanager
def _moments(prepared: Prepared) -> Iterator[None]:
    """Hold as much memory as the moments of those parameters take that have none yet."""
    parameters = [parameter for group in prepared.optimizer.param_groups for parameter in group["params"]]
    held = [torch.empty_like(p) for p in parameters if p not in prepared.optimizer.state for _ in range(2)]
    yield
    held.clear()
