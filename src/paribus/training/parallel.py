"""Preparation of a model and its optimizer for the device and for one or several processes."""

import atexit
import dataclasses
import importlib.metadata
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

import torch
import torch.distributed
from accelerate import Accelerator
from accelerate.utils import DistributedDataParallelKwargs, InitProcessGroupKwargs
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

from paribus.config.groups.training import TrainingConfig
from paribus.errors import ConfigurationError, OutOfMemoryError, is_out_of_memory
from paribus.modeling.decoder import Decoder
from paribus.modeling.device import expect_many_shapes, resolve_device
from paribus.modeling.models import recompute_activations, stacked_layers
from paribus.stage import JSON
from paribus.training.distributed import ASKED_BY
from paribus.training.fit import missing_for_compilation
from paribus.training.losses import DocumentEnd, SummedLoss, SummedPairLoss, compile_loss, make_loss, make_optimizer
from paribus.training.sharded import is_empty


@dataclass(frozen=True)
class Prepared:
    """A model, its optimizer and its wrapper, ready to train."""

    model: Any
    """The model itself, not wrapped."""
    wrapped: Any
    """Module that gives the summed loss of inputs and targets."""
    optimizer: Any
    unsynchronized: Callable[[], AbstractContextManager[Any]]
    """Context in which gradients stay in this process; the last backward pass of a step sums them over processes."""
    buckets: bool = False
    """True if gradients stay in the buckets of DDP, beside which new ones would take as much memory again."""

    def forget_gradients(self) -> None:
        """Drop the gradients, or set them to zero where they stay in buckets."""
        self.optimizer.zero_grad(set_to_none=not self.buckets)


def prepare(accelerator: Any, model: Any, training: TrainingConfig, document_end: DocumentEnd | None) -> Prepared:
    """Move a model to the device, compile and wrap it, and make its optimizer.

    A model on `meta`, which processes are to share, has uninitialized weights afterwards.
    DDP is accelerate's. FSDP2 is PyTorch's `fully_shard` called directly, since accelerate trains with DDP on CPUs
    where it is asked for FSDP: what runs on GPUs could not be tested on CPUs.
    """
    # Answers of a task that was fine-tuned before may have been scored in TF32 in this process.
    torch.set_float32_matmul_precision("highest")
    if document_end is not None:
        # From PyTorch 2.15 on cuDNN, too, may compute attention within documents: it plans for every number of
        # documents, and is not excluded where a training is to be deterministic.
        expect_many_shapes()
    shared = is_shared(training, accelerator.num_processes)
    # A model that processes share is moved a layer at a time, of which each process keeps its rows.
    (model if shared else model.to(accelerator.device)).train()
    if training.activation_checkpointing:
        recompute_activations(model)
    half = resolve_precision(training.precision, accelerator.device) == "bf16"
    computes_in = torch.bfloat16 if half else torch.float32
    loss = make_loss(model, document_end, training.label_smoothing, computes_in)
    if compiles(training, accelerator.device):
        compile_loss(loss)
        if accelerator.device.type == "cuda":
            start_compiler_processes()
    if shared:
        return sharded(accelerator, loss, training)
    several = accelerator.num_processes > 1
    if several:
        # DDP takes existing gradients into its buckets; else it fills these in the last backward pass of a step alone.
        for parameter in loss.parameters():
            if parameter.requires_grad:
                parameter.grad = torch.zeros_like(parameter)
    wrapped = accelerator.prepare_model(loss)
    unsynchronized = partial(accelerator.no_sync, wrapped)
    return Prepared(model, wrapped, make_optimizer(model, training), unsynchronized, buckets=several)


def is_shared(training: TrainingConfig, processes: int) -> bool:
    """True if processes share the weights among them."""
    return training.parallel == "fsdp" and processes > 1


def compiles(training: TrainingConfig, device: torch.device) -> bool:
    """True if layers are compiled on `device` of this machine."""
    if training.compile == "auto":
        return device.type == "cuda" and not training.deterministic and missing_for_compilation(gpu=True) is None
    return training.compile == "always"


def arithmetic(device: str, precision: str, *, compiled: bool, shared: bool) -> str:
    """Device and precision of a training, in words; trainings that differ in them round differently at every step.

    In bfloat16 a compiled layer keeps in float32 what it hands on within a kernel, weights of norms included, unless
    these travel between processes, which they do in bfloat16.
    """
    if precision != "bf16" or not compiled:
        return f"{device} in {precision}"
    return f"{device} in {precision}, compiled{' with shared weights' if shared else ''}"


def why_not_compiled(training: TrainingConfig, device: torch.device) -> str | None:
    """Message on layers that would be compiled if this machine had the tools; None otherwise."""
    eligible = training.compile == "auto" and not training.deterministic and device.type == "cuda"
    lack = missing_for_compilation(gpu=True) if eligible else None
    return f"layers are not compiled, which makes training slower: {lack} is not here" if lack else None


def sharded(accelerator: Any, loss: SummedLoss | SummedPairLoss, training: TrainingConfig) -> Prepared:
    """Shard a model by FSDP2 with the arithmetic of one process; a decoder's layers travel in the type they compute in.

    Embeddings and the output matrix travel in float32, as they are summed. Other models do so whole: autocast casts
    their weights.
    """
    mesh, copies = _mesh(accelerator, training)
    float32 = MixedPrecisionPolicy(reduce_dtype=torch.float32, cast_forward_inputs=False)
    decoder = isinstance(loss.model, Decoder)
    policy = dataclasses.replace(float32, param_dtype=loss.model.computes_in) if decoder else float32
    for layer in stacked_layers(loss.model):
        fully_shard(layer, mesh=mesh, mp_policy=policy, reshard_after_forward=training.reshard_after_forward)
    root: Any = fully_shard(loss, mesh=mesh, mp_policy=float32)
    if is_empty(loss):
        loss.to_empty(device=accelerator.device)
    # Gradients are divided after each backward pass: kept whole until the last one, they would take the memory saved.
    unsynchronized = partial(_within_a_copy, root) if copies > 1 else nullcontext
    return Prepared(loss.model, loss, make_optimizer(loss.model, training), unsynchronized)


def _mesh(accelerator: Any, training: TrainingConfig) -> tuple[DeviceMesh, int]:
    """The mesh of processes that divide weights, and the number of groups that have a copy each."""
    kind, processes = accelerator.device.type, accelerator.num_processes
    shards = training.shard_processes or processes
    if shards == processes:
        return init_device_mesh(kind, (processes,)), 1
    ranks = torch.arange(processes).view(-1, shards)
    # `init_device_mesh` would give them the ten minutes of NCCL, whatever the group of all was given.
    divide: Any = partial(torch.distributed.new_subgroups_by_enumeration, timeout=COLLECTIVE)
    groups = [divide(members.tolist())[0] for members in (ranks.T, ranks)]
    return DeviceMesh.from_group(groups, kind, ranks, mesh_dim_names=("copies", "shards")), len(ranks)


@contextmanager
def _within_a_copy(root: Any) -> Iterator[None]:
    """Within the block, shards of gradients are summed over the processes of a copy and not over copies."""
    root.set_requires_all_reduce(False)
    try:
        yield
    finally:
        root.set_requires_all_reduce(True)


COLLECTIVE = timedelta(minutes=30)
"""Longest wait of a process for the others in a step: one of them compiles, or is held up by its node.

Where one of them reads or writes, the others wait on the host (`training.distributed.Host`)."""


def resolve_precision(precision: str, device: torch.device) -> str:
    """`fp32` or `bf16`; `auto` is bf16 on a CUDA device that computes in it, fp32 elsewhere."""
    if precision != "auto":
        return precision
    if device.type != "cuda":
        return "fp32"
    with torch.cuda.device(device):
        return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "fp32"


def make_accelerator(training: TrainingConfig, processes: int = 1) -> tuple[Any, str]:
    """An `Accelerator` on the configured device, and the precision (`fp32` or `bf16`) it computes in.

    Weights, gradients and optimizer state are float32 either way. Raises ConfigurationError unless this is one of
    `processes` processes of a group: a launcher that starts too few or too many would change nothing but the speed, or
    train several models.
    """
    device = resolve_device(training.device, "training.device")
    if device.type == "cuda" and processes > 1:
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    precision = resolve_precision(training.precision, device)
    if device.type == "cuda":
        torch.cuda.set_device(device)
    accelerator = Accelerator(
        cpu=device.type == "cpu",
        # Else an environment variable decides, and may put every forward pass under autocast.
        mixed_precision="no",
        kwargs_handlers=[
            DistributedDataParallelKwargs(
                gradient_as_bucket_view=True,
                # Else buckets are made anew after the first step, so that one after a resumption sums in another order.
                find_unused_parameters=training.deterministic,
            ),
            InitProcessGroupKwargs(timeout=COLLECTIVE),
        ],
    )
    if accelerator.num_processes != processes:
        raise ConfigurationError(
            f"the run trains in {processes} processes, but the environment asks for {accelerator.num_processes} "
            "(WORLD_SIZE); set training.processes instead of starting paribus with a distributed launcher"
        )
    return accelerator, precision


def device_name(device: torch.device) -> str:
    """Name of the device for the record: the GPU's model, or cpu."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"


@contextmanager
def explained_memory_errors(training: TrainingConfig) -> Iterator[None]:
    """Turn an allocation failure inside the block into an `OutOfMemoryError` that says what to change."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        smaller = max(1, min(training.micro_batch, training.global_batch) // 2)
        raise OutOfMemoryError(
            f"training ran out of memory with training.micro_batch={training.micro_batch}; set "
            f"training.micro_batch={smaller}, which accumulates the same global batches in smaller pieces ({error})"
        ) from error


DETERMINISM_PREFIX = "training.deterministic: "
"""Before the names of what `determinism_conditions` gives."""


@contextmanager
def deterministic(training: TrainingConfig) -> Iterator[None]:
    """Make operations deterministic in the block, where `training.deterministic` asks for it.

    Raises ConfigurationError for an operation that has no deterministic implementation. The environment variables that
    cuBLAS and NCCL need, every process is started with.
    """
    if not training.deterministic:
        yield
        return
    before = torch.get_deterministic_debug_mode(), torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark
    try:
        torch.use_deterministic_algorithms(True)
        torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = True, False
        yield
    except RuntimeError as error:
        # PyTorch has no class for it: `X does not have a deterministic implementation`, `X is not deterministic`.
        if "determinis" not in str(error):
            raise
        raise ConfigurationError(
            f"training.deterministic is true, which cannot be here ({error}); take other settings of the model or of "
            "training, or training.deterministic=false"
        ) from error
    finally:
        torch.set_deterministic_debug_mode(before[0])
        torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = before[1:]


def determinism_conditions(training: TrainingConfig, accelerator: Any, device: str, precision: str) -> dict[str, JSON]:
    """Conditions, besides the recipe, on which the rounding of a deterministic training depends, for the fingerprint.

    `device` is the name of each process' device, `precision` fp32 or bf16. Empty for any other training.
    """
    if not training.deterministic:
        return {}
    several, gpu = accelerator.num_processes > 1, accelerator.device.type == "cuda"
    shards = training.shard_processes
    conditions: dict[str, JSON] = {
        "device": device,
        "precision": precision,
        "processes": accelerator.num_processes,
        "micro_batch": training.micro_batch,
        "parallel": training.parallel if several else None,
        # Gradients are summed within a copy, and then over copies.
        "shard_processes": shards if shards and shards < accelerator.num_processes else None,
        # The order in which GPUs sum follows the wires between them, that of processes on hosts does not.
        "processes_a_node": int(os.environ.get("LOCAL_WORLD_SIZE", "1")) if several and gpu else None,
        "activation_checkpointing": training.activation_checkpointing,
        "torch": importlib.metadata.version("torch"),
        # The threads of the host do not change what GPUs compute.
        "threads": None if gpu else torch.get_num_threads(),
    }
    return {DETERMINISM_PREFIX + name: value for name, value in conditions.items()}


def start_compiler_processes() -> None:
    """Start the processes of PyTorch's compiler with the signals blocked that ask a training for a checkpoint.

    Such a signal may be sent to all processes of a group or of a job. Killed by it, these would never answer, and the
    training would wait for them without end. Signals that this process gets meanwhile are delivered afterwards.
    """
    from torch._inductor.async_compile import AsyncCompile  # takes seconds, which a CPU's training need not wait for

    before = signal.pthread_sigmask(signal.SIG_BLOCK, ASKED_BY)
    try:
        AsyncCompile.warm_pool()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    atexit.unregister(stop_compiler_processes)
    atexit.register(stop_compiler_processes)  # before PyTorch's own, as later


def stop_compiler_processes() -> None:
    """Let the compiler's processes end that have nothing to compile.

    At exit PyTorch ends them by SIGTERM, which is blocked in them, and from 2.15 on waits ten seconds for them.
    """
    from torch._inductor import async_compile
    from torch._inductor.compile_worker.subproc_pool import SubprocPool

    for pool in async_compile._pool_set:
        if isinstance(pool, SubprocPool) and pool.running:
            pool.quiesce()
