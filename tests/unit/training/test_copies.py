"""The groups of processes that share weights among them, and those that have the same ones."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.distributed
from torch.distributed import device_mesh, distributed_c10d
from torch.testing._internal.distributed.fake_pg import FakeStore

from paribus.training import parallel
from paribus.training.parallel import COLLECTIVE
from support.training_inputs import TRAINING


@pytest.fixture
def four_processes() -> Iterator[None]:
    """This process as number 2 of four, of which the others are not there."""
    torch.distributed.init_process_group("fake", store=FakeStore(), rank=2, world_size=4)
    yield
    torch.distributed.destroy_process_group()


@pytest.mark.usefixtures("four_processes")
@pytest.mark.parametrize(("shards", "copies", "of_copies", "of_shards"), [(2, 2, [0, 2], [2, 3]), (1, 4, None, [2])])
def test_groups_of_copies_and_of_shards_wait_as_long_as_that_of_all(
    shards: int, copies: int, of_copies: list[int] | None, of_shards: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By NCCL, groups that nobody gives a time wait for ten minutes, in which a process may still be compiling."""
    given: list[timedelta | None] = []
    made = distributed_c10d.new_group

    def new_group(*ranks: Any, timeout: timedelta | None = None, **how: Any) -> Any:
        given.append(timeout)
        return made(*ranks, timeout=timeout, **how)

    for module in (distributed_c10d, device_mesh):
        monkeypatch.setattr(module, "new_group", new_group)
    accelerator = SimpleNamespace(device=torch.device("cpu"), num_processes=4)
    mesh, number = parallel._mesh(accelerator, replace(TRAINING, parallel="fsdp", shard_processes=shards))
    assert number == copies
    groups = [torch.distributed.get_process_group_ranks(mesh.get_group(name)) for name in ("copies", "shards")]
    assert groups == [of_copies or [0, 1, 2, 3], of_shards]
    assert given and set(given) == {COLLECTIVE}
