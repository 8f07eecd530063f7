"""Processes that share weights or have copies of them, compilation of layers, and deterministic trainings."""

import math
import signal
import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import psutil
import pytest
import torch
import torch._inductor.config
import torch.distributed
from torch._dynamo.backends.distributed import DDPOptimizer
from torch._inductor.async_compile import AsyncCompile, shutdown_compile_workers
from torch.distributed import device_mesh, distributed_c10d
from torch.nn.parallel import DistributedDataParallel
from torch.testing._internal.distributed.fake_pg import FakeStore

from paribus.config.groups.model import LlamaModel
from paribus.config.groups.training import TrainingConfig
from paribus.errors import ConfigurationError, DataError
from paribus.modeling.models import build_model
from paribus.training import fit, losses, parallel, train
from paribus.training.data import Batch
from paribus.training.distributed import ASKED_BY
from paribus.training.fit import Fit
from paribus.training.parallel import (
    COLLECTIVE,
    Prepared,
    compiles,
    deterministic,
    prepare,
    start_compiler_processes,
    why_not_compiled,
)
from paribus.training.step import Stepper
from support.stages import files
from support.training_inputs import TRAINING, config, execute, write_inputs


@pytest.fixture
def third_of_four() -> Iterator[Any]:
    """This process as number 2 of four, of which the others are not there."""
    torch.distributed.init_process_group("fake", store=FakeStore(), rank=2, world_size=4)
    yield SimpleNamespace(device=torch.device("cpu"), num_processes=4)
    torch.distributed.destroy_process_group()


@pytest.mark.parametrize(("shards", "copies", "members"), [(2, 2, [[0, 2], [2, 3]]), (1, 4, [[0, 1, 2, 3], [2]])])
def test_groups_of_copies_and_of_shards_wait_as_long_as_that_of_all(
    shards: int, copies: int, members: list[list[int]], third_of_four: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By NCCL, groups without a time of their own wait for ten minutes, in which a process may still be compiling."""
    timeouts: list[timedelta | None] = []
    original = distributed_c10d.new_group

    def new_group(*ranks: Any, timeout: timedelta | None = None, **options: Any) -> Any:
        timeouts.append(timeout)
        return original(*ranks, timeout=timeout, **options)

    for module in (distributed_c10d, device_mesh):
        monkeypatch.setattr(module, "new_group", new_group)
    mesh, number = parallel._mesh(third_of_four, replace(TRAINING, parallel="fsdp", shard_processes=shards))
    groups = [torch.distributed.get_process_group_ranks(mesh.get_group(name)) for name in ("copies", "shards")]
    assert (number, groups) == (copies, members)
    assert timeouts and set(timeouts) == {COLLECTIVE}


# Where the gradients of a training by DDP are: in the buckets that it sums over processes, which cut no layer.

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


def storages(prepared: Prepared) -> dict[int, int]:
    """Bytes of the memory that gradients stand in, by its address; none stands anywhere else."""
    gradients = [parameter.grad for parameter in prepared.model.parameters()]
    assert all(gradient is not None for gradient in gradients)
    return {g.untyped_storage().data_ptr(): g.untyped_storage().nbytes() for g in gradients if g is not None}


def test_gradients_of_micro_batches_are_added_up_in_the_buckets(
    accelerator: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared = prepare(accelerator, build_model(MODEL, 50, seed=0), TRAINING, None)
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


def test_compiled_layer_is_cut_nowhere_for_the_sake_of_a_bucket(
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


# What compiled layers need beside PyTorch, and what becomes of a training without it.

GPU, CPU = torch.device("cuda", 0), torch.device("cpu")
AUTO = TrainingConfig(compile="auto")


def test_gpu_compiles_where_triton_finds_what_it_needs_and_else_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("CC", "CXX"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(fit.sysconfig, "get_path", lambda name: str(tmp_path))
    never, strict = replace(AUTO, compile="never"), replace(AUTO, deterministic=True)
    for program, headers, missing in (
        (None, False, "a C compiler"),
        ("gcc", False, "Python.h"),
        ("gcc", True, None),
        ("clang", True, None),
    ):
        monkeypatch.setattr(fit.shutil, "which", lambda name, program=program: name if name == program else None)
        if headers:
            (tmp_path / "Python.h").touch()
        assert compiles(AUTO, GPU) is (missing is None), (program, headers)
        assert not any((compiles(AUTO, CPU), compiles(never, GPU), compiles(strict, GPU)))
        message = why_not_compiled(AUTO, GPU)
        assert message is None if missing is None else message and missing in message, (program, headers)
        assert why_not_compiled(AUTO, CPU) is why_not_compiled(never, GPU) is None


# The processes that compile kernels, where a signal is sent to all processes of a training.


@pytest.fixture
def compiler_processes() -> Iterator[None]:
    """Two of them at most, and none before and after."""
    shutdown_compile_workers()
    with torch._inductor.config.patch(compile_threads=2):
        yield
    shutdown_compile_workers()


@pytest.mark.usefixtures("compiler_processes")
@pytest.mark.slow
def test_request_for_a_checkpoint_does_not_end_the_compilation_of_a_kernel() -> None:
    this, handlers = psutil.Process(), [signal.getsignal(number) for number in ASKED_BY]
    before = set(this.children(recursive=True))
    start_compiler_processes()
    assert [signal.getsignal(number) for number in ASKED_BY] == handlers
    AsyncCompile.process_pool().submit(time.sleep, 0).result(120)
    compiled = AsyncCompile.process_pool().submit(time.sleep, 2)
    workers = set(this.children(recursive=True)) - before
    assert len(workers) >= 2
    for process, number in product(workers, ASKED_BY):
        process.send_signal(number)
    compiled.result(30)


def test_compiler_processes_start_for_a_gpu_before_a_training_heeds_signals(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    monkeypatch.setattr(parallel, "start_compiler_processes", lambda: calls.append("started"))
    monkeypatch.setattr(parallel, "resolve_precision", lambda *_: "fp32")
    monkeypatch.setattr(torch.nn.Module, "to", lambda self, *_: self)
    for device, compiled, started in ((GPU, "always", 1), (GPU, "never", 0), (CPU, "always", 0)):
        accelerator = SimpleNamespace(
            device=device, num_processes=1, prepare_model=lambda model: model, no_sync=nullcontext
        )
        training = replace(TRAINING, compile=compiled)  # type: ignore[arg-type]
        prepare(accelerator, build_model(MODEL, 64, 0, eos_id=3), training, None)
        assert calls == ["started"] * started, (device, compiled)
        calls.clear()


# Deterministic trainings: what is refused, and that nothing of it is left behind.

STRICT = replace(TRAINING, deterministic=True)


def test_operation_without_a_deterministic_implementation_is_refused_by_the_field() -> None:
    with pytest.raises(ConfigurationError, match=r"training\.deterministic is true.*put_"), deterministic(STRICT):
        torch.zeros(3).put_(torch.tensor([0]), torch.ones(1))
    assert not torch.are_deterministic_algorithms_enabled()
    with deterministic(TRAINING):
        torch.zeros(3).put_(torch.tensor([0]), torch.ones(1))
    with pytest.raises(RuntimeError, match="another"), deterministic(STRICT):
        raise RuntimeError("another")


def test_steps_run_under_deterministic_algorithms_and_equal_those_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs, enabled = write_inputs(tmp_path), set()
    original = losses.loss_and_difference

    def recorded(*arguments: Any) -> Any:
        enabled.add((torch.are_deterministic_algorithms_enabled(), torch.backends.cudnn.deterministic))
        return original(*arguments)

    monkeypatch.setattr(losses, "loss_and_difference", recorded)
    execute(tmp_path, "strict", inputs, config(training=STRICT))
    assert enabled == {(True, True)}
    execute(tmp_path, "plain", inputs)
    strict, plain = (files(tmp_path / name / "output") for name in ("strict", "plain"))
    assert {name for name in plain if strict[name] != plain[name]} == {"state/state.json"}


def test_deterministic_training_refuses_other_conditions_and_a_refusal_changes_nothing(tmp_path: Path) -> None:
    """Less memory for a while lowers the micro-batch, which is refused; with memory the same command is as before."""
    inputs = write_inputs(tmp_path)
    execute(tmp_path, "run", inputs, config(training=STRICT))
    with pytest.raises(DataError, match=r"training\.deterministic: micro_batch: 3 there, 2 here\); give it again"):
        execute(tmp_path, "run", inputs, config(training=replace(STRICT, micro_batch=2)))
    execute(tmp_path, "run", inputs, config(training=STRICT))
    record = tmp_path / "run" / "work" / "micro_batch.json"
    before = record.read_bytes()
    with pytest.MonkeyPatch.context() as patch, pytest.raises(DataError, match="micro_batch: 3 there, 1 here"):
        patch.setattr(train, "fit", lambda *_: Fit(1))
        execute(tmp_path, "run", inputs, config(training=STRICT))
    assert record.read_bytes() == before
    execute(tmp_path, "run", inputs, config(training=STRICT))
