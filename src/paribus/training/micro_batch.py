"""Micro-batch that a training uses: recorded in its working directory, and found by trial on a GPU.

How sums are rounded depends on it, so it stays as it is when a training goes on. A CPU's memory is not looked at: free
memory must not decide how sums round. A trial is forward and backward passes of random tokens.
"""

from bisect import bisect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import torch
from accelerate.utils import release_memory

from paribus.config.groups.training import TrainingConfig
from paribus.errors import OutOfMemoryError, is_out_of_memory
from paribus.modeling.device import free_gpu_bytes
from paribus.modeling.models import vocabulary_size
from paribus.store.files import read_object, write_json
from paribus.training.distributed import Host
from paribus.training.parallel import Prepared

MICRO_BATCH_FILE = "micro_batch.json"


@dataclass(frozen=True)
class MicroBatch:
    """Record of the micro-batch that a training found.

    All processes of a training keep it in one file; those that run out of memory in one step write the same.
    """

    directory: Path
    given: int
    """The configured `training.micro_batch`; a record made for another is ignored."""
    share: int
    """Contexts of a global batch that each process has."""
    recomputes: bool = False
    """Value of `training.activation_checkpointing`, without which far more memory is taken."""

    @classmethod
    def of(cls, directory: Path, training: TrainingConfig, processes: int) -> Self:
        """Record of a training that works in `directory`, in `processes` processes."""
        share = max(1, training.global_batch // processes)
        return cls(directory, training.micro_batch, share, training.activation_checkpointing)

    @property
    def used(self) -> int | None:
        """Micro-batch in use; None where none was found yet, or where it was all of a share that was smaller then."""
        record = self._read()
        if not record or record["used"] == record.get("share", self.share) < self.share:
            return None
        return min(int(record["used"]), self.share)

    @property
    def halvings(self) -> int:
        """How often it was halved because memory ran out."""
        return int(self._read().get("halvings", 0))

    @property
    def tried_on(self) -> int | None:
        """Bytes of the GPU whose memory decided what is used, by trial or by running out.

        None for a prediction, where nothing is used yet, and where `recomputes` was different then.
        """
        record = self._read()
        return record.get("tried_on") if record.get("recomputes") == self.recomputes and self.used else None

    def keep(self, used: int, tried_on: int | None = None) -> None:
        """Record the micro-batch that fits, as tried on a GPU of `tried_on` bytes if that is given.

        One that is lower only because the share is smaller now tells nothing of memory, and leaves the record as it is.
        """
        record = self._read()
        if used != self.used:
            self._write(used, self.share, self.halvings, tried_on)
        elif used == record["used"]:
            self._write(used, record.get("share", self.share), self.halvings, tried_on)

    def halve(self, used: int, share: int, tried_on: int | None = None) -> int | None:
        """Record and return the largest divisor of `share`, the contexts of a process, up to half of `used`; else None.

        `tried_on` are the bytes of the GPU that had too little memory for more.
        """
        smaller = next((size for size in range(used // 2, 0, -1) if share % size == 0), None)
        if smaller is not None:
            self._write(smaller, share, self.halvings + 1, tried_on)
        return smaller

    def _read(self) -> dict[str, Any]:
        path = self.directory / MICRO_BATCH_FILE
        record = read_object(path) if path.is_file() else {}
        return record if record.get("given") == self.given else {}

    def _write(self, used: int, share: int, halvings: int, tried_on: int | None) -> None:
        record = {"given": self.given, "used": used, "share": share, "halvings": halvings}
        write_json(self.directory / MICRO_BATCH_FILE, record | {"tried_on": tried_on, "recomputes": self.recomputes})


TRIAL_SHARE = 0.95
"""The share of a GPU's memory that trials may take: real batches cut memory into other pieces."""


def largest_fitting(start: int, share: int, fits: Callable[[int], bool]) -> int:
    """The largest divisor of `share` that `fits`, tried from the largest up to `start`, up or else down.

    `start` need not be a divisor: it may have been found for another share. Raises OutOfMemoryError where none fits.
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
    """True if a micro-batch of `size` of the `share` contexts of a process fits, in every process of a training.

    Contexts have `length` tokens. As much memory as AdamW will take is held meanwhile, and in a second pass, where a
    step has several micro-batches, the gradients of the first. No process waits for another in the passes, so that none
    that runs out of memory leaves others in a collective.
    """
    device, too_large = accelerator.device, False
    # Not the wrapper of DDP: its hooks sum nothing unless a forward pass of its own was before.
    loss = accelerator.unwrap_model(prepared.wrapped)
    torch.cuda.reset_peak_memory_stats(device)
    vocabulary = vocabulary_size(prepared.model)
    try:
        with _held_moments(prepared):
            # A generator of its own: the random numbers of the training must not depend on trials.
            random = torch.Generator(device).manual_seed(0)
            tokens = torch.randint(vocabulary, (size, length), generator=random, device=device)
            for _ in range(1 if size == share else 2):
                accelerator.backward(loss(tokens, tokens))
            too_large = torch.cuda.max_memory_reserved(device) > TRIAL_SHARE * torch.cuda.mem_get_info(device)[1]
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        too_large = True
    # Outside of the handler, whose error keeps the tensors alive.
    prepared.forget_gradients()
    release_memory()
    return not host.agreed((too_large,))[0]


@contextmanager
def _held_moments(prepared: Prepared) -> Iterator[None]:
    """Hold as much memory as the missing moments of parameters will take."""
    parameters = [parameter for group in prepared.optimizer.param_groups for parameter in group["params"]]
    held = [torch.empty_like(p) for p in parameters if p not in prepared.optimizer.state for _ in range(2)]
    yield
    held.clear()


def available_bytes(device: torch.device) -> int | None:
    """Free bytes of a GPU; None for a CPU, which takes the configured micro-batch."""
    return free_gpu_bytes(device) if device.type == "cuda" else None


def gpu_bytes(device: torch.device) -> int | None:
    """All memory of a GPU; None for a CPU."""
    return int(torch.cuda.mem_get_info(device)[1]) if device.type == "cuda" else None


def peak_bytes(device: torch.device) -> int:
    """The most bytes of tensors that this process had at once on a GPU; 0 on a CPU, where nobody counts them."""
    return torch.cuda.max_memory_allocated(device) if device.type == "cuda" else 0


def forget_peak(device: torch.device) -> None:
    """Make `peak_bytes` count from here on."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
