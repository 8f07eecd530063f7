"""The groups of processes that share weights among them, and those that have the same ones."""

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed
from torch._dynamo.backends.distributed import DDPOptimizer
from torch.distributed import device_mesh, distributed_c10d
from torch.nn.parallel import DistributedDataParallel
from torch.testing._internal.distributed.fake_pg import FakeStore

from paribus.config.groups.model import LlamaModel
from paribus.config.groups.training import TrainingConfig
from paribus.errors import ConfigurationError, DataError
from paribus.modeling.models import build_model
from paribus.training import fit, losses, parallel, train
from paribus.training.data import Batch
from paribus.training.fit import Fit
from paribus.training.parallel import (
    COLLECTIVE,
    Prepared,
    arithmetic,
    compiles,
    determinism_conditions,
    deterministic,
    prepare,
    why_not_compiled,
)
from paribus.training.step import Stepper
from support.stages import files
from support.training_inputs import TRAINING, config, execute, write_inputs


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


# What compiled layers need beside PyTorch, and what becomes of a training without it.

GPU, CPU = torch.device("cuda", 0), torch.device("cpu")
AUTO = TrainingConfig(compile="auto")


def has(monkeypatch: pytest.MonkeyPatch, *programs: str, headers: Path) -> None:
    """A machine with these programs, and Python's headers in a directory."""
    for variable in ("CC", "CXX"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(fit.shutil, "which", lambda name: name if name in programs else None)
    monkeypatch.setattr(fit.sysconfig, "get_path", lambda name: str(headers))


@pytest.fixture
def headers(tmp_path: Path) -> Path:
    (tmp_path / "Python.h").touch()
    return tmp_path


@pytest.mark.parametrize("program", ["gcc", "clang"])
def test_a_gpu_compiles_by_itself_where_there_is_what_triton_needs(
    program: str, headers: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    has(monkeypatch, program, headers=headers)
    assert compiles(AUTO, GPU) and not compiles(AUTO, CPU)
    assert not compiles(replace(AUTO, compile="never"), GPU)
    assert why_not_compiled(AUTO, GPU) is None


@pytest.mark.parametrize(("programs", "named"), [((), "a C compiler"), (("gcc",), "Python.h")])
def test_without_it_a_training_goes_on_uncompiled_and_says_what_is_not_here(
    programs: tuple[str, ...], named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    has(monkeypatch, *programs, headers=tmp_path)
    assert not compiles(AUTO, GPU)
    told = why_not_compiled(AUTO, GPU)
    assert told is not None and named in told and told.endswith("is not here")
    assert why_not_compiled(AUTO, CPU) is None
    assert why_not_compiled(replace(AUTO, compile="never"), GPU) is None


def test_trainings_in_bfloat16_that_round_otherwise_are_told_apart() -> None:
    assert arithmetic("H100", "bf16", compiled=False, shared=True) == "H100 in bf16"
    assert arithmetic("H100", "bf16", compiled=True, shared=False) == "H100 in bf16, compiled"
    assert arithmetic("H100", "bf16", compiled=True, shared=True) == "H100 in bf16, compiled with shared weights"
    assert arithmetic("H100", "fp32", compiled=True, shared=True) == "H100 in fp32"


# Deterministic trainings: what is refused, and that nothing of it is left behind.

STRICT = dataclasses.replace(TRAINING, deterministic=True)


def test_an_operation_without_a_deterministic_implementation_is_refused_by_the_field() -> None:
    with pytest.raises(ConfigurationError, match=r"training\.deterministic is true.*put_"), deterministic(STRICT):
        torch.zeros(3).put_(torch.tensor([0]), torch.ones(1))
    assert not torch.are_deterministic_algorithms_enabled()
    with deterministic(TRAINING):
        torch.zeros(3).put_(torch.tensor([0]), torch.ones(1))
    with pytest.raises(RuntimeError, match="another"), deterministic(STRICT):
        raise RuntimeError("another")


def test_a_step_runs_under_deterministic_algorithms_and_gives_what_it_gives_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs, asked = write_inputs(tmp_path), set()
    original = losses.loss_and_difference

    def noted(*arguments: Any) -> Any:
        asked.add((torch.are_deterministic_algorithms_enabled(), torch.backends.cudnn.deterministic))
        return original(*arguments)

    monkeypatch.setattr(losses, "loss_and_difference", noted)
    execute(tmp_path, "strict", inputs, config(training=STRICT))
    assert asked == {(True, True)}
    execute(tmp_path, "plain", inputs)
    strict, plain = (files(tmp_path / name / "output") for name in ("strict", "plain"))
    assert {name for name in plain if strict[name] != plain[name]} == {"state/state.json"}


def test_layers_are_not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "missing_for_compilation", lambda gpu: None)
    gpu = torch.device("cuda", 0)
    assert [parallel.compiles(training, gpu) for training in (STRICT, TRAINING)] == [False, True]


def test_going_on_under_other_conditions_is_refused_by_name(tmp_path: Path) -> None:
    inputs = write_inputs(tmp_path)
    execute(tmp_path, "run", inputs, config(training=STRICT))
    with pytest.raises(DataError, match=r"training\.deterministic: micro_batch: 3 there, 2 here\); give it again"):
        execute(tmp_path, "run", inputs, config(training=dataclasses.replace(STRICT, micro_batch=2)))


def test_what_was_refused_changes_nothing_of_what_goes_on(tmp_path: Path) -> None:
    """Less memory for a while lowers the micro-batch, which is refused; with memory the same command is as before."""
    inputs = write_inputs(tmp_path)
    execute(tmp_path, "run", inputs, config(training=STRICT))
    kept = tmp_path / "run" / "work" / "micro_batch.json"
    before = kept.read_bytes()
    with pytest.MonkeyPatch.context() as patch, pytest.raises(DataError, match="micro_batch: 3 there, 1 here"):
        patch.setattr(train, "fit", lambda *_: Fit(1))
        execute(tmp_path, "run", inputs, config(training=STRICT))
    assert kept.read_bytes() == before
    execute(tmp_path, "run", inputs, config(training=STRICT))


@pytest.mark.parametrize("name", ["shard_processes", "processes_a_node"])
def test_what_else_decides_in_which_order_gpus_sum_is_told(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of groups with a copy each, within these first; and as many processes on fewer nodes have other wires."""
    gpu, found = SimpleNamespace(num_processes=8, device=torch.device("cuda", 0)), []
    for shards, a_node in ((0, "8"), (2, "4"), (8, "8")):
        monkeypatch.setenv("LOCAL_WORLD_SIZE", a_node)
        strict = dataclasses.replace(STRICT, parallel="fsdp", shard_processes=shards)
        found.append(determinism_conditions(strict, gpu, "NVIDIA H100", "bf16"))
    assert [told[f"training.deterministic: {name}"] for told in found] == {
        "shard_processes": [None, 2, None],
        "processes_a_node": [8, 4, 8],
    }[name]


@pytest.mark.parametrize("strict", [True, False])
def test_ddp_keeps_its_buckets_where_sums_must_come_in_one_order(strict: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {}

    def accelerator(**options: Any) -> Any:
        given.update(options)
        return SimpleNamespace(num_processes=1)

    monkeypatch.setattr(parallel, "Accelerator", accelerator)
    parallel.make_accelerator(dataclasses.replace(TRAINING, deterministic=strict))
    assert given["kwargs_handlers"][0].find_unused_parameters is strict
