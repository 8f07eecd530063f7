"""Training with the same bits on the same hardware: what PyTorch is told, and what runs must have in common."""

import importlib.metadata
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from paribus.config.groups.training import TrainingConfig
from paribus.errors import ConfigurationError
from paribus.stage import JSON
from paribus.training.processes.processes import on_this_node

PREFIX = "training.deterministic: "
"""Before the names of what `conditions` gives."""


@contextmanager
def deterministic(training: TrainingConfig) -> Iterator[None]:
    """In the block, operations are deterministic where `training.deterministic` asks for it.

    ConfigurationError for an operation that has no deterministic implementation. What cuBLAS and NCCL need, variables
    of the environment, every process is started with.
    """
    if not training.deterministic:
        yield
        return
    before = torch.get_deterministic_debug_mode(), torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark
    try:
        torch.use_deterministic_algorithms(True)
        torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = True, False
        yield
    except RuntimeError as error:
        # PyTorch has no class for it: `X does not have a deterministic implementation`, `X is not deterministic`.
        if "determinis" not in str(error):
            raise
        raise ConfigurationError(
            f"training.deterministic is true, which cannot be here ({error}); take other settings of the model or of "
            "training, or training.deterministic=false"
        ) from error
    finally:
        torch.set_deterministic_debug_mode(before[0])
        torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = before[1:]


def conditions(training: TrainingConfig, accelerator: Any, device: str, precision: str) -> dict[str, JSON]:
    """Of a deterministic training what decides how it rounds beside its recipe, by name, for the fingerprint.

    `device` is the name of what each process computes on, `precision` fp32 or bf16. Empty for any other training.
    """
    if not training.deterministic:
        return {}
    several, gpu = accelerator.num_processes > 1, accelerator.device.type == "cuda"
    shards = training.shard_processes
    found: dict[str, JSON] = {
        "device": device,
        "precision": precision,
        "processes": accelerator.num_processes,
        "micro_batch": training.micro_batch,
        "parallel": training.parallel if several else None,
        # Gradients are summed within a copy, and then over copies.
        "shard_processes": shards if shards and shards < accelerator.num_processes else None,
        # The order in which GPUs sum follows the wires between them, that of processes on hosts does not.
        "processes_a_node": on_this_node() if several and gpu else None,
        "activation_checkpointing": training.activation_checkpointing,
        "torch": importlib.metadata.version("torch"),
        # GPUs do not care how many threads the host has.
        "threads": None if gpu else torch.get_num_threads(),
    }
    return {PREFIX + name: value for name, value in found.items()}
