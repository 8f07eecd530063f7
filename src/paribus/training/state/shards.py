"""The rows that a process has of a tensor that FSDP2 shares among processes."""

from typing import Any, Protocol

import torch
from torch.distributed.tensor import DTensor, Shard

from paribus.training.state.stored import StoredTensors


class WeightSource(Protocol):
    """Where the weights of a model come from."""

    def rows(self, name: str, start: int, stop: int) -> torch.Tensor:
        """Rows `start` to `stop` of the parameter `name`, float32 on the CPU."""


def is_empty(module: torch.nn.Module) -> bool:
    """Whether the parameters of a module are on `meta`."""
    return any(parameter.is_meta for parameter in module.parameters())


def local_rows(tensor: DTensor) -> tuple[int, int]:
    """First row of this process and the one after its last; FSDP2 gives all but the last ones equally many."""
    mesh, dimension = tensor.device_mesh, _sharded_dimension(tensor)
    each = -(-tensor.shape[0] // mesh.size(dimension))
    start = min(mesh.get_local_rank(dimension) * each, tensor.shape[0])
    return start, start + tensor.to_local().shape[0]


def is_first_replica(tensor: DTensor) -> bool:
    """Whether this process writes its rows, of all that have the same."""
    sharded = _sharded_dimension(tensor)
    others = (dimension for dimension in range(tensor.device_mesh.ndim) if dimension != sharded)
    return all(tensor.device_mesh.get_local_rank(dimension) == 0 for dimension in others)


def _sharded_dimension(tensor: DTensor) -> int:
    (found,) = (number for number, placement in enumerate(tensor.placements) if placement == Shard(0))
    return found


def placed(stored: StoredTensors, name: str, like: torch.Tensor) -> torch.Tensor:
    """A stored tensor, of which no more is read than this process' rows of `like` where that has its shape."""
    if not isinstance(like, DTensor) or stored.shapes[name] != tuple(like.shape):
        return stored.whole(name)
    start, stop = local_rows(like)
    local = stored.rows(name, start, stop) if start < stop else torch.empty(0, *like.shape[1:])
    sharded: torch.Tensor = DTensor.from_local(
        local.to(like.device),
        like.device_mesh,
        like.placements,
        run_check=False,
        shape=like.shape,
        stride=like.stride(),
    )
    return sharded


def load_weights(model: Any, source: WeightSource) -> None:
    """Fill the parameters of a model, each process the rows that it has."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            start, stop = local_rows(parameter) if isinstance(parameter, DTensor) else (0, parameter.shape[0])
            if start < stop:
                target = parameter.to_local() if isinstance(parameter, DTensor) else parameter
                target.copy_(source.rows(name, start, stop))
