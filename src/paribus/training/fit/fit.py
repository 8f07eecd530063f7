"""The largest micro-batch that fits into memory, found before anything is trained."""

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

from paribus.config.groups.model import ModelConfig
from paribus.config.units import format_size
from paribus.errors import OutOfMemoryError
from paribus.modeling.memory import TrainingMemory, TrainingSetting, training_memory

MARGIN = 1.1
"""How many times the prediction must be free."""


@dataclass(frozen=True)
class Fit:
    """How a run trains in the memory there is."""

    micro_batch: int
    lowered: str | None = None
    """Why the micro-batch is not the configured one."""
    tried_on: int | None = None
    """Bytes of the GPU on which it was tried before."""


def fit(model: ModelConfig, vocab_size: int, how: TrainingSetting, available: int | None) -> Fit:
    """The largest micro-batch up to `how.micro_batch` that divides the share and fits into `available` bytes.

    A smaller one accumulates the same global batches. Raises OutOfMemoryError where not even one context fits.
    """
    memory = training_memory(model, vocab_size, how)
    if memory is None or available is None or _fits(memory, available):
        return Fit(how.micro_batch)
    for size in _smaller(how):
        smaller = training_memory(model, vocab_size, dataclasses.replace(how, micro_batch=size))
        if smaller and _fits(smaller, available):
            return Fit(size, _lowered(how, size, memory, available))
    raise OutOfMemoryError(_refusal(model, vocab_size, how, available))


def _fits(memory: TrainingMemory, available: int) -> bool:
    return memory.device * MARGIN <= available


def _smaller(how: TrainingSetting) -> Iterator[int]:
    """Divisors of the share below the micro-batch, the largest first."""
    return (size for size in range(how.micro_batch - 1, 0, -1) if how.share % size == 0)


def _lowered(how: TrainingSetting, size: int, memory: TrainingMemory, available: int) -> str:
    return (
        f"training.micro_batch is lowered from {how.micro_batch} to {size}: {how.micro_batch} would take "
        f"{format_size(memory.device)}, {MARGIN:g} times of which must be free, and {format_size(available)} "
        "are; global batches stay as they are"
    )


def _refusal(model: ModelConfig, vocab_size: int, how: TrainingSetting, available: int) -> str:
    memory = training_memory(model, vocab_size, dataclasses.replace(how, micro_batch=1))
    assert memory is not None
    parts = {"weights": memory.weights, "moments": memory.moments, "gradients": memory.gradients}
    parts |= {"activations": memory.activations}
    listed = ", ".join(f"{name} {format_size(size)}" for name, size in parts.items())
    return (
        f"training takes {format_size(memory.device)} a process even with training.micro_batch=1 ({listed}), "
        f"{MARGIN:g} times of which must be free, and {format_size(available)} are; "
        f"{'; or '.join(_remedies(how))}"
    )


def _remedies(how: TrainingSetting) -> Iterator[str]:
    if not how.activation_checkpointing:
        yield "set training.activation_checkpointing=true"
    if not how.sharded:
        yield "divide weights among GPUs with training.parallel=fsdp and more training.processes"
    yield "take a smaller model or model.context_length"
