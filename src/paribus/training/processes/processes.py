"""How many processes carry out a stage."""

import os
from dataclasses import dataclass

import torch

from paribus.config.groups.training import TrainingConfig
from paribus.config.schema import divided
from paribus.errors import ConfigurationError
from paribus.modeling.device import resolve_device


@dataclass(frozen=True)
class Processes:
    """`a_node` processes on each of `nodes` nodes."""

    a_node: int
    nodes: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.a_node * self.nodes


def resolve_processes(training: TrainingConfig) -> Processes:
    """The processes of a run on this machine and in this allocation.

    Raises ConfigurationError for more than there are GPUs, and where they cannot share the global batch.
    """
    nodes = training.nodes or int(os.environ.get("SLURM_JOB_NUM_NODES", "1"))
    processes = Processes(training.processes or _visible(training.device), nodes)
    visible = torch.cuda.device_count()
    if _on_gpu(training.device) and processes.a_node > visible:
        raise ConfigurationError(
            f"training.processes is {processes.a_node}, but {visible} CUDA devices are visible; lower it, or set "
            "training.device=cpu"
        )
    check_shares(training, processes.total)
    check_shards(training, processes.total)
    return processes


def beside(asked: int | None, device: str, training: TrainingConfig, path: str) -> Processes:
    """The processes of one node in which a stage after the training computes, as the field `path` asks on `device`.

    None asks on GPUs for as many as train, where so many are here, and on a CPU for one; 0 for one a visible GPU.
    Raises ConfigurationError for more than there are GPUs.
    """
    if not _on_gpu(device):
        return Processes(asked or 1, 1)
    visible = 1 if ":" in device else _visible(device)
    if asked is None:
        return Processes(min(training.processes or visible, visible), 1)
    if asked > visible:
        raise ConfigurationError(f"{path} is {asked}, and {visible} CUDA devices are visible to it; lower it")
    return Processes(asked or visible, 1)


def on_this_node() -> int:
    """How many processes the agent that started this one has started; 1 where none did."""
    return int(os.environ.get("LOCAL_WORLD_SIZE", "1"))


def check_shares(training: TrainingConfig, processes: int) -> None:
    """Raise ConfigurationError unless each process can have the same number of contexts of a global batch."""
    path, contexts = divided(training)
    if contexts % processes:
        raise ConfigurationError(
            f"{path} is {contexts}, which {processes} processes cannot share evenly; change {path} or "
            "training.processes"
        )


def check_shards(training: TrainingConfig, processes: int) -> None:
    """Raise ConfigurationError unless the processes that divide weights make up all of them, group by group."""
    shards = training.shard_processes
    if shards and training.parallel != "fsdp":
        raise ConfigurationError(
            f"training.shard_processes is {shards}, but training.parallel={training.parallel} divides no weights; set "
            "training.parallel=fsdp, or training.shard_processes=0"
        )
    if shards and processes % shards:
        raise ConfigurationError(
            f"training.shard_processes is {shards}, of which no groups make up {processes} processes; take a divisor "
            f"of {processes}, such as the processes of a node, or 0 for all"
        )


def same_device(device: str) -> str:
    """What processes are told of `device`, which `auto` is to be a GPU in all or in none of them, as here.

    One on a node that has lost its GPUs, or that alone has any, would wait by gloo for others that wait by NCCL, or the
    other way round. ConfigurationError as `resolve_device`.
    """
    return resolve_device(device, "training.device").type if device == "auto" else device


def _on_gpu(device: str) -> bool:
    return device.startswith("cuda") or (device == "auto" and torch.cuda.is_available())


def _visible(device: str) -> int:
    return max(1, torch.cuda.device_count()) if _on_gpu(device) else 1
