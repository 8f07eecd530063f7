"""A model and its optimizer made ready for the device and for one or several processes."""

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.distributed
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

from paribus.config.groups.training import TrainingConfig
from paribus.modeling.decoder import Decoder
from paribus.modeling.device import expect_many_shapes
from paribus.modeling.models import recompute_activations, stacked_layers
from paribus.training.fit.compiler import lacking
from paribus.training.fit.device import COLLECTIVE, resolve_precision
from paribus.training.state.shards import is_empty
from paribus.training.step.compiler import start_compiler
from paribus.training.step.loss import DocumentEnd, SummedLoss, SummedPairLoss, compile_loss, make_loss
from paribus.training.step.optimizer import make_optimizer


@dataclass(frozen=True)
class Prepared:
    """What is trained."""

    model: Any
    """The model inside."""
    wrapped: Any
    """Called with inputs and targets, gives the summed loss."""
    optimizer: Any
    unsynchronized: Callable[[], AbstractContextManager[Any]]
    """In it, gradients stay in this process, to be summed over processes by the last backward pass of a step."""
    buckets: bool = False
    """Whether gradients stay where DDP sums them, for others would take as much memory again beside these."""

    def forget_gradients(self) -> None:
        """Let go of the gradients, or set them to zero where they stay."""
        self.optimizer.zero_grad(set_to_none=not self.buckets)


def prepare(accelerator: Any, model: Any, training: TrainingConfig, document_end: DocumentEnd | None) -> Prepared:
    """Move a model to the device, compile and wrap it, and make its optimizer.

    The weights of one on `meta`, which processes are to share, are of no meaning afterwards.
    DDP is accelerate's. FSDP2 is PyTorch's `fully_shard` called directly, since accelerate trains with DDP on CPUs
    where it is asked for FSDP: what runs on GPUs could not be tested on CPUs.
    """
    # Answers of a task that was fine-tuned before may have been scored in TF32 in this process.
    torch.set_float32_matmul_precision("highest")
    if document_end is not None:
        # From PyTorch 2.15 on attention within documents may be cuDNN's too, which plans for every number of documents,
        # and which nothing keeps from it where a training is to be deterministic.
        expect_many_shapes()
    shared = is_shared(training, accelerator.num_processes)
    # One that processes share is moved a layer at a time, each of which keeps its rows.
    (model if shared else model.to(accelerator.device)).train()
    if training.activation_checkpointing:
        recompute_activations(model)
    half = resolve_precision(training.precision, accelerator.device) == "bf16"
    computes_in = torch.bfloat16 if half else torch.float32
    loss = make_loss(model, document_end, training.label_smoothing, computes_in)
    if compiles(training, accelerator.device):
        compile_loss(loss)
        if accelerator.device.type == "cuda":
            start_compiler()
    if shared:
        return sharded(accelerator, loss, training)
    several = accelerator.num_processes > 1
    if several:
        # Into its buckets DDP takes those that are there; else it fills them in the last backward pass of a step alone.
        for parameter in filter(_is_trained, loss.parameters()):
            parameter.grad = torch.zeros_like(parameter)
    wrapped = accelerator.prepare_model(loss)
    unsynchronized = partial(accelerator.no_sync, wrapped)
    return Prepared(model, wrapped, make_optimizer(model, training), unsynchronized, buckets=several)


def _is_trained(parameter: torch.nn.Parameter) -> bool:
    return parameter.requires_grad


def is_shared(training: TrainingConfig, processes: int) -> bool:
    """Whether processes share the weights among them."""
    return training.parallel == "fsdp" and processes > 1


def compiles(training: TrainingConfig, device: torch.device) -> bool:
    """Whether layers are compiled on `device` of this machine."""
    if training.compile == "auto":
        return device.type == "cuda" and not training.deterministic and lacking(gpu=True) is None
    return training.compile == "always"


def arithmetic(device: str, precision: str, *, compiled: bool, shared: bool) -> str:
    """What a training is computed on, in words: trainings that differ in it round otherwise, at every step alike.

    In bfloat16 a compiled layer keeps in float32 what it hands on within a kernel, weights of norms among it, unless
    these travel between processes, which is in bfloat16.
    """
    if precision != "bf16" or not compiled:
        return f"{device} in {precision}"
    return f"{device} in {precision}, compiled{' with shared weights' if shared else ''}"


def why_not_compiled(training: TrainingConfig, device: torch.device) -> str | None:
    """What to say of layers that would be compiled if the machine had what that needs; else None."""
    asked = training.compile == "auto" and not training.deterministic and device.type == "cuda"
    lack = lacking(gpu=True) if asked else None
    return f"layers are not compiled, which makes training slower: {lack} is not here" if lack else None


def sharded(accelerator: Any, loss: SummedLoss | SummedPairLoss, training: TrainingConfig) -> Prepared:
    """The arithmetic of one process: a layer casts its weights to the type that it computes in, so they travel in it.

    Embeddings and the output matrix travel in float32, as they are summed; autocast casts weights by itself.
    """
    mesh, copies = _mesh(accelerator, training)
    whole = MixedPrecisionPolicy(reduce_dtype=torch.float32, cast_forward_inputs=False)
    decoder = isinstance(loss.model, Decoder)
    policy = dataclasses.replace(whole, param_dtype=loss.model.computes_in) if decoder else whole
    again = training.reshard_after_forward
    for layer in stacked_layers(loss.model):
        fully_shard(layer, mesh=mesh, mp_policy=policy, reshard_after_forward=again)
    root: Any = fully_shard(loss, mesh=mesh, mp_policy=whole)
    if is_empty(loss):
        loss.to_empty(device=accelerator.device)
    # Gradients are divided after each backward pass: kept whole until the last one, they would take the memory saved.
    unsynchronized = partial(_within_a_copy, root) if copies > 1 else nullcontext
    return Prepared(loss.model, loss, make_optimizer(loss.model, training), unsynchronized)


def _mesh(accelerator: Any, training: TrainingConfig) -> tuple[DeviceMesh, int]:
    """The processes that divide weights, and how many such groups have a copy each."""
    kind, processes = accelerator.device.type, accelerator.num_processes
    shards = training.shard_processes or processes
    if shards == processes:
        return init_device_mesh(kind, (processes,)), 1
    ranks = torch.arange(processes).view(-1, shards)
    # `init_device_mesh` would give them the ten minutes of NCCL, whatever the group of all was given.
    divide: Any = partial(torch.distributed.new_subgroups_by_enumeration, timeout=COLLECTIVE)
    groups = [divide(each.tolist())[0] for each in (ranks.T, ranks)]
    return DeviceMesh.from_group(groups, kind, ranks, mesh_dim_names=("copies", "shards")), len(ranks)


@contextmanager
def _within_a_copy(root: Any) -> Iterator[None]:
    """Within the block, shards of gradients are summed over the processes of a copy and not over copies."""
    root.set_requires_all_reduce(False)
    try:
        yield
    finally:
        root.set_requires_all_reduce(True)
