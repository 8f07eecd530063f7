"""How the processes of a stage wait for each other and agree: on the host, for as long as all of them live."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed

from paribus.errors import InfrastructureError

PATIENCE = timedelta(days=7)
Result = TypeVar("Result")


@dataclass(frozen=True)
class Host:
    """One of the processes of a stage, as the host sees it.

    They wait by gloo whatever they compute on. A collective of the GPUs that waits for the main process to read a
    corpus or to write an artefact would end the training after its timeout, and keep the GPUs busy until then; under
    gloo, the end of a process ends the waiting of all.
    """

    main: bool
    group: Any
    """Of gloo; None where there is one process."""
    writers: Any = None
    """A group of its own for the threads that write checkpoints, beside what the processes do meanwhile."""

    def gathered_by_writers(self, found: dict[str, str]) -> dict[str, str]:
        """What the writing threads of all processes found, once all are here."""
        if self.writers is None:
            return found
        told: list[dict[str, str]] = [{} for _ in range(torch.distributed.get_world_size(self.writers))]
        torch.distributed.all_gather_object(told, found, group=self.writers)
        return {name: value for one in told for name, value in one.items()}

    @property
    def rank(self) -> int:
        """Which of the processes this is, the main one 0."""
        return 0 if self.group is None else torch.distributed.get_rank(self.group)

    @property
    def size(self) -> int:
        """Number of processes."""
        return 1 if self.group is None else torch.distributed.get_world_size(self.group)

    def gathered(self, found: Result) -> list[Result]:
        """What all processes found, by rank."""
        if self.group is None:
            return [found]
        told: list[Any] = [None] * self.size
        torch.distributed.all_gather_object(told, found, group=self.group)
        return told

    def wait(self) -> None:
        """Wait until every process is here."""
        if self.group is not None:
            torch.distributed.barrier(group=self.group)

    def agreed(self, claims: Sequence[bool]) -> list[bool]:
        """Of each claim whether any process makes it, the same in all; clocks and signals differ from node to node."""
        if self.group is None:
            return list(claims)
        told = torch.tensor(claims, dtype=torch.uint8)
        torch.distributed.all_reduce(told, torch.distributed.ReduceOp.MAX, group=self.group)
        return [bool(claim) for claim in told]


ALONE = Host(main=True, group=None)
"""The host of a stage in one process."""


def join_host(accelerator: Any) -> Host:
    """Join the other processes; all must do so, before any of them keeps the others waiting."""
    several = accelerator.num_processes > 1
    groups = [torch.distributed.new_group(backend="gloo", timeout=PATIENCE) if several else None for _ in range(2)]
    return Host(accelerator.is_main_process, *groups)


@contextmanager
def joined_by_gloo(processes: int) -> Iterator[Host]:
    """Within the block, one of `processes` that compute by themselves and exchange numbers on the host alone.

    InfrastructureError where the group has another size.
    """
    torch.distributed.init_process_group("gloo", timeout=PATIENCE)
    try:
        group: Any = torch.distributed.group.WORLD
        host = Host(torch.distributed.get_rank() == 0, group)
        if host.size != processes:
            raise InfrastructureError(f"{processes} processes were to be started, and the group has {host.size}")
        yield host
        host.wait()
    finally:
        torch.distributed.destroy_process_group()
