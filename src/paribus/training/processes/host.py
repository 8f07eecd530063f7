"""How the processes of a training wait for each other and agree: on the host, for as long as all of them live."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed

PATIENCE = timedelta(days=7)


@dataclass(frozen=True)
class Host:
    """One of the processes of a training, as the host sees it.

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
"""The host of a training in one process."""


def join_host(accelerator: Any) -> Host:
    """Join the other processes; all must do so, before any of them keeps the others waiting."""
    several = accelerator.num_processes > 1
    groups = [torch.distributed.new_group(backend="gloo", timeout=PATIENCE) if several else None for _ in range(2)]
    return Host(accelerator.is_main_process, *groups)
