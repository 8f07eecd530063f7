"""What a checkpoint holds, copied out of the model and the optimizer so that training can go on while it is written."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.distributed.tensor import DTensor, distribute_tensor

OPTIMIZER_STATE = ("step", "exp_avg", "exp_avg_sq")


@dataclass(frozen=True)
class Snapshot:
    """Whole tensors on the CPU that nothing else changes."""

    model: Any
    """The transformers model, whose configuration is written beside the weights."""
    weights: dict[str, torch.Tensor]
    optimizer: dict[str, torch.Tensor]


def take_snapshot(model: Any, optimizer: torch.optim.Optimizer, *, keep: bool = True) -> Snapshot | None:
    """The state of an unwrapped model and of its optimizer, for processes that `keep` it.

    Every process of a sharded model must call this, since the whole is gathered from all.
    """
    weights = _copied(_tensors(model), keep)
    state = _copied(_optimizer_state(model, optimizer), keep)
    return Snapshot(model, weights, state) if keep else None


def _tensors(model: Any) -> dict[str, torch.Tensor]:
    """Parameters and buffers that belong to a checkpoint; shared ones once."""
    named = dict(model.named_parameters()) | dict(model.named_buffers())
    kept = model.state_dict().keys()
    return {name: tensor for name, tensor in named.items() if name in kept}


def _optimizer_state(model: Any, optimizer: torch.optim.Optimizer) -> dict[str, torch.Tensor]:
    """The state as `exp_avg.<parameter>` and so on; nothing before the first step."""
    return {
        f"{kind}.{name}": value
        for name, parameter in model.named_parameters()
        for kind, value in optimizer.state.get(parameter, {}).items()
    }


def load_optimizer_tensors(model: Any, optimizer: torch.optim.Optimizer, tensors: Mapping[str, torch.Tensor]) -> None:
    """Put back the optimizer state of a snapshot, on the devices and with the shards of the parameters."""
    names = {parameter: name for name, parameter in model.named_parameters()}
    ordered = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    state = {
        number: {
            kind: _like(parameter, tensors[f"{kind}.{names[parameter]}"])
            for kind in OPTIMIZER_STATE
            if f"{kind}.{names[parameter]}" in tensors
        }
        for number, parameter in enumerate(ordered)
    }
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict(
        {"state": {number: kept for number, kept in state.items() if kept}, "param_groups": groups}
    )


def _copied(tensors: Mapping[str, torch.Tensor], keep: bool) -> dict[str, torch.Tensor]:
    copies: dict[str, torch.Tensor] = {}
    for name, tensor in tensors.items():
        whole = tensor.full_tensor() if isinstance(tensor, DTensor) else tensor
        if keep:
            copies[name] = whole.detach().to("cpu", copy=True, memory_format=torch.contiguous_format)
    return copies


def _like(parameter: torch.Tensor, tensor: torch.Tensor) -> torch.Tensor:
    """`tensor` sharded as `parameter` is, if it has its shape."""
    if isinstance(parameter, DTensor) and tensor.shape == parameter.shape:
        sharded: torch.Tensor = distribute_tensor(
            tensor.to(parameter.device), parameter.device_mesh, parameter.placements
        )
        return sharded
    return tensor
