"""A group of one process, by NCCL on a GPU: DDP and FSDP2 compute what one process alone does."""

import os
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.distributed
from torch.nn.parallel import DistributedDataParallel

from acceptance.given import Answer, Given
from acceptance.stepping import Alone, difference, losses, stepper, stepping
from paribus.config.groups.model import GPTNeoXModel, LlamaModel
from paribus.config.groups.training import TrainingConfig
from paribus.modeling.models import build_model
from paribus.training.losses import make_loss, make_optimizer
from paribus.training.parallel import Prepared, sharded

MODELS = {
    "llama": LlamaModel(width=256, layers=4, heads=4, ffn_width=688, context_length=256),
    "gpt_neox": GPTNeoXModel(width=256, layers=4, heads=4, ffn_width=1024, context_length=256),
}
VOCABULARY, ROWS, STEPS, LIMIT = 4096, 8, 6, 1e-6


def measure(given: Given) -> Answer:
    """The largest relative difference of a loss from one process alone, by family, precision and kind of group."""
    backend = {"cuda": "nccl", "cpu": "gloo"}[given.device]
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0", RANK="0", WORLD_SIZE="1", LOCAL_RANK="0")
    store = torch.distributed.HashStore()
    torch.distributed.init_process_group(backend, store=store, rank=0, world_size=1)
    answer = Answer({"backend": backend})
    for name, model in MODELS.items():
        for precision in ("fp32", "bf16"):
            rows, length = (2, 32) if given.tiny else (ROWS, model.context_length)
            training = TrainingConfig(precision=precision, micro_batch=rows // 2, global_batch=rows, compile="never")
            narrower = {"width": 64, "ffn_width": 96} if given.tiny else {}
            shape, device = replace(model, context_length=length, **narrower), given.torch_device
            alone = losses(stepper(shape, VOCABULARY, training, device), rows, length, VOCABULARY, STEPS)
            for kind, prepared in (("ddp", _ddp), ("fsdp", _fsdp)):
                group = prepared(shape, precision, training, device)
                found = losses(stepping(Alone(device), group, training), rows, length, VOCABULARY, STEPS)
                differs = difference(found, alone)
                answer.numbers[f"{name} {precision} {kind}"] = differs
                answer.expect(differs <= LIMIT, f"{name} {precision} {kind}: losses differ by {differs:.2g}")
    torch.distributed.destroy_process_group()
    return answer


def _loss(model: Any, precision: str, device: torch.device) -> Any:
    built = build_model(model, VOCABULARY, 0).to(device).train()
    return make_loss(built, None, 0.0, torch.bfloat16 if precision == "bf16" else torch.float32)


def _ddp(model: Any, precision: str, training: TrainingConfig, device: torch.device) -> Prepared:
    loss = _loss(model, precision, device)
    wrapped = DistributedDataParallel(loss, gradient_as_bucket_view=True)
    return Prepared(loss.model, wrapped, make_optimizer(loss.model, training), wrapped.no_sync)


def _fsdp(model: Any, precision: str, training: TrainingConfig, device: torch.device) -> Prepared:
    return sharded(_Group(device), _loss(model, precision, device), training)


@dataclass(frozen=True)
class _Group:
    """What sharding needs of an accelerator."""

    device: torch.device
    num_processes: int = 1
