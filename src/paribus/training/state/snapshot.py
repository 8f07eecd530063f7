"""What a checkpoint holds, copied out of the model and the optimizer so that training can go on while it is written."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.distributed.tensor import DTensor

from paribus.modeling.decoder import Decoder
from paribus.training.state.pieces import Piece
from paribus.training.state.shards import is_first_replica, local_rows, placed
from paribus.training.state.stored import StoredTensors

MOMENTS = ("exp_avg", "exp_avg_sq")
OPTIMIZER_STATE = ("step", *MOMENTS)


@dataclass(frozen=True)
class Snapshot:
    """Tensors on the CPU that nothing else changes: whole, or of a sharded model the rows of this process."""

    model: Any
    """Unwrapped, whose configuration is written beside the weights."""
    weights: dict[str, Piece]
    optimizer: dict[str, Piece]
    sharded: bool
    """Whether every process has one, of rows, which may be none."""


def take_snapshot(model: Any, optimizer: torch.optim.Optimizer, *, main: bool) -> Snapshot | None:
    """What this process has to write of an unwrapped model and of its optimizer; None for nothing.

    Of a `Decoder` that processes share, each writes its rows; of an encoder-decoder the main process writes the whole,
    which is gathered from all, so every process must call this.
    """
    tensors = _tensors(model), _optimizer_state(model, optimizer)
    if isinstance(model, Decoder) and any(isinstance(parameter, DTensor) for parameter in model.parameters()):
        weights, state = (_rows(found, main=main) for found in tensors)
        return Snapshot(model, weights, state, sharded=True)
    weights, state = (_whole(found, main=main) for found in tensors)
    return Snapshot(model, weights, state, sharded=False) if main else None


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


def load_optimizer_tensors(model: Any, optimizer: torch.optim.Optimizer, tensors: StoredTensors) -> None:
    """Put back the optimizer state of a snapshot, on the devices and with the shards of the parameters."""
    names = {parameter: name for name, parameter in model.named_parameters()}
    ordered = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    state = {
        number: {
            kind: placed(tensors, f"{kind}.{names[parameter]}", parameter)
            for kind in OPTIMIZER_STATE
            if f"{kind}.{names[parameter]}" in tensors
        }
        for number, parameter in enumerate(ordered)
    }
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict(
        {"state": {number: kept for number, kept in state.items() if kept}, "param_groups": groups}
    )


def _rows(tensors: Mapping[str, torch.Tensor], *, main: bool) -> dict[str, Piece]:
    """The rows that this process has and no other writes, and in the main process what is not shared."""
    copies: dict[str, Piece] = {}
    for name, tensor in tensors.items():
        if isinstance(tensor, DTensor):
            start, stop = local_rows(tensor)
            if start < stop and is_first_replica(tensor):
                copies[name] = Piece(_copy(tensor.to_local()), start, tuple(tensor.shape))
        elif main:
            copies[name] = Piece(_copy(tensor), 0, tuple(tensor.shape))
    return copies


def _whole(tensors: Mapping[str, torch.Tensor], *, main: bool) -> dict[str, Piece]:
    copies: dict[str, Piece] = {}
    for name, tensor in tensors.items():
        whole = tensor.full_tensor() if isinstance(tensor, DTensor) else tensor
        if main:
            copies[name] = Piece(_copy(whole), 0, tuple(whole.shape))
    return copies


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().to("cpu", copy=True, memory_format=torch.contiguous_format)
