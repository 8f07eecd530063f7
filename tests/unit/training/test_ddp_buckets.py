"""Where the gradients of a training by DDP are: in the buckets that it sums over processes, which cut no layer."""

import math
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed
from torch._dynamo.backends.distributed import DDPOptimizer
from torch.nn.parallel import DistributedDataParallel

from paribus.config.groups.model import LlamaModel
from paribus.modeling.models import build_model
from paribus.training.data import Batch
from paribus.training.parallel import Prepared, prepare
from paribus.training.step import Stepper
from support.training_inputs import TRAINING

MODEL = LlamaModel(width=16, layers=2, heads=2, ffn_width=24, context_length=8)


@pytest.fixture
def accelerator() -> Iterator[Any]:
    """What wraps by DDP for two processes, of which this one alone is there."""
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    yield SimpleNamespace(
        device=torch.device("cpu"),
        num_processes=2,
        prepare_model=lambda loss: DistributedDataParallel(loss, gradient_as_bucket_view=True),
        no_sync=lambda wrapped: wrapped.no_sync(),
        unwrap_model=lambda wrapped: wrapped.module,
        backward=lambda loss: loss.backward(),
        reduce=lambda tensor, how: tensor,
        clip_grad_norm_=torch.nn.utils.clip_grad_norm_,
    )
    torch.distributed.destroy_process_group()


@pytest.fixture
def ddp(accelerator: Any) -> tuple[Any, Prepared]:
    return accelerator, prepare(accelerator, build_model(MODEL, 50, seed=0), TRAINING, None)


def storages(prepared: Prepared) -> dict[int, int]:
    """Bytes of the memory that gradients stand in, by its address; none stands anywhere else."""
    gradients = [parameter.grad for parameter in prepared.model.parameters()]
    assert all(gradient is not None for gradient in gradients)
    return {g.untyped_storage().data_ptr(): g.untyped_storage().nbytes() for g in gradients if g is not None}


def test_gradients_of_micro_batches_are_added_up_in_the_buckets(
    ddp: tuple[Any, Prepared], monkeypatch: pytest.MonkeyPatch
) -> None:
    accelerator, prepared = ddp
    weights = sum(parameter.nbytes for parameter in prepared.model.parameters())
    stepper = Stepper(accelerator, prepared, list(prepared.model.parameters()), 1, 1.0, math.inf)
    tokens = torch.from_numpy(np.random.default_rng(0).integers(0, 50, (3, 8)))
    held: list[dict[int, int]] = []

    def backward(loss: torch.Tensor) -> None:
        held.append(storages(prepared))
        loss.backward()

    monkeypatch.setattr(accelerator, "backward", backward)
    for step in range(3):
        held.clear()
        stepper.step(Batch(step, np.arange(3), tokens, tokens, 24), 0.01)
        assert all(sum(one.values()) == weights for one in held)
        # After the first step DDP makes its buckets anew.
        assert step == 0 or held == [storages(prepared)] * 3
        assert not any(parameter.grad.any() for parameter in prepared.model.parameters())


def test_a_compiled_layer_is_cut_nowhere_for_the_sake_of_a_bucket(
    accelerator: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kernels of its parts would round otherwise than those of one process, in bfloat16 losses by 1e-4."""
    monkeypatch.setattr(DDPOptimizer, "compile_fn", lambda *_, **__: pytest.fail("it was cut for DDP"))
    training = replace(TRAINING, compile="always")
    # `monkeypatch` would leave a setting of which PyTorch says that there is none.
    with torch._dynamo.config.patch(optimize_ddp=True):
        prepared = prepare(accelerator, build_model(MODEL, 50, seed=0), training, None)
        tokens = torch.zeros((2, 8), dtype=torch.int64)
        prepared.wrapped(tokens, tokens).backward()
