"""AdamW with weight decay on matrices only, and its state as named tensors."""

from collections.abc import Mapping
from typing import Any

import torch

from paribus.config.groups.training import TrainingConfig

STATE_NAMES = ("step", "exp_avg", "exp_avg_sq")


def make_optimizer(model: torch.nn.Module, training: TrainingConfig) -> torch.optim.AdamW:
    """AdamW (Loshchilov and Hutter 2019, algorithm 2); the learning rate is set before each step."""
    parameters = list(model.parameters())
    groups: list[dict[str, Any]] = [
        {"params": [p for p in parameters if p.ndim > 1], "weight_decay": training.weight_decay},
        {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
    ]
    fused = parameters[0].device.type == "cuda"
    betas = (training.beta1, training.beta2)
    return torch.optim.AdamW(groups, lr=training.learning_rate, betas=betas, eps=training.epsilon, fused=fused)


def optimizer_tensors(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, torch.Tensor]:
    """The state as CPU tensors `exp_avg.<parameter>` and so on; the optimizer has made at least one step."""
    return {
        f"{kind}.{name}": optimizer.state[parameter][kind].detach().cpu().contiguous()
        for name, parameter in model.named_parameters()
        for kind in STATE_NAMES
    }


def load_optimizer_tensors(
    model: torch.nn.Module, optimizer: torch.optim.Optimizer, tensors: Mapping[str, torch.Tensor]
) -> None:
    """Put back what `optimizer_tensors` gave, on the devices of the parameters."""
    names = {parameter: name for name, parameter in model.named_parameters()}
    ordered = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    state = {
        number: {kind: tensors[f"{kind}.{names[parameter]}"] for kind in STATE_NAMES}
        for number, parameter in enumerate(ordered)
    }
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
