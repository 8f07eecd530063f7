"""Fit of a training to a machine: the largest micro-batch by formula, and what compiling needs.

`paribus plan` uses this, so nothing heavy may be imported here.
"""

import dataclasses
import os
import shutil
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from paribus.config.groups.model import ModelConfig
from paribus.config.schema import RunConfig
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
    for size in (size for size in range(how.micro_batch - 1, 0, -1) if how.share % size == 0):
        smaller = training_memory(model, vocab_size, dataclasses.replace(how, micro_batch=size))
        if smaller and _fits(smaller, available):
            lowered = (
                f"training.micro_batch is lowered from {how.micro_batch} to {size}: {how.micro_batch} would take "
                f"{format_size(memory.device)}, {MARGIN:g} times of which must be free, and {format_size(available)} "
                "are; global batches stay as they are"
            )
            return Fit(size, lowered)
    raise OutOfMemoryError(_refusal(model, vocab_size, how, available))


def _fits(memory: TrainingMemory, available: int) -> bool:
    return memory.device * MARGIN <= available


def _refusal(model: ModelConfig, vocab_size: int, how: TrainingSetting, available: int) -> str:
    memory = training_memory(model, vocab_size, dataclasses.replace(how, micro_batch=1))
    assert memory is not None
    parts = ("weights", "moments", "gradients", "activations")
    listed = ", ".join(f"{name} {format_size(getattr(memory, name))}" for name in parts)
    remedies = ["take a smaller model or model.context_length"]
    if not how.sharded:
        remedies.insert(0, "divide weights among GPUs with training.parallel=fsdp and more training.processes")
    if not how.activation_checkpointing:
        remedies.insert(0, "set training.activation_checkpointing=true")
    return (
        f"training takes {format_size(memory.device)} a process even with training.micro_batch=1 ({listed}), "
        f"{MARGIN:g} times of which must be free, and {format_size(available)} are; {'; or '.join(remedies)}"
    )


def one_process(config: RunConfig) -> RunConfig:
    """The training of one process of `config`, by itself."""
    training = config.training
    share = training.global_batch // (max(1, training.processes) * max(1, training.nodes))
    alone = dataclasses.replace(
        training, processes=1, nodes=1, parallel="ddp", shard_processes=0, global_batch=max(1, share)
    )
    return dataclasses.replace(config, training=alone)


def missing_for_compilation(*, gpu: bool) -> str | None:
    """Tool that PyTorch compiles layers with and this machine lacks; None where all is there.

    PyTorch itself is not imported.
    """
    if not gpu:
        return None if _has_program("CXX", "g++", "clang++") else "a C++ compiler (CXX, g++ or clang++)"
    if not _has_program("CC", "gcc", "clang"):
        return "a C compiler (CC, gcc or clang)"
    # Triton compiles what starts each kernel as an extension of Python.
    has_headers = (Path(sysconfig.get_path("include")) / "Python.h").is_file()
    return None if has_headers else "Python.h, Python's headers for C,"


def _has_program(variable: str, *names: str) -> bool:
    """True if the program that the variable names, or else one of `names`, is there."""
    chosen = os.environ.get(variable)
    return any(map(shutil.which, names if chosen is None else (chosen,)))
