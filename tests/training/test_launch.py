"""Several processes that train one model: that they compute what one does, and how they end."""

import errno
import json
import os
import signal
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest
import torch
from process_scenarios import MEMBERS
from safetensors.numpy import load_file

from paribus.config.groups.execution import EngineConfig
from paribus.config.schema import RunConfig
from paribus.errors import FullDiskError, InfrastructureError, NumericalError, OutOfMemoryError
from paribus.pipeline.execute import child_environment
from paribus.training import launch
from paribus.training.distributed import STEPPING, Processes, report_failure
from paribus.training.launch import SlurmNodes, _failure
from support.stages import context_at, files
from support.training_inputs import TRAINING, config, execute, write_inputs
from support.training_processes import Program, begin, begin_program, finish
from support.waiting import wait_until


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("processes")
    write_inputs(directory)
    return directory


def write_program(directory: Path, name: str, script: str) -> None:
    directory.mkdir(exist_ok=True)
    (directory / name).write_text(script)
    (directory / name).chmod(0o755)


TWO_NODES = """#!/bin/sh
# Starts what follows the options once a node, as SLURM does, on this machine.
case "$1 $2" in "--nodes=2 --ntasks=2") ;; *) exit 64 ;; esac
while :; do case "$1" in --*) shift ;; *) break ;; esac; done
SLURM_NODEID=0 "$@" & SLURM_NODEID=1 "$@" & wait
"""


@pytest.fixture(scope="module")
def allocation(root: Path) -> dict[str, str]:
    """The environment of an allocation of two nodes that are both this machine; a real SLURM is not to be had here."""
    write_program(root / "tools", "srun", TWO_NODES)
    write_program(root / "tools", "scontrol", "#!/bin/sh\necho localhost; echo localhost\n")
    path = f"{root / 'tools'}:{os.environ['PATH']}"
    return {"PATH": path, "SLURM_JOB_NODELIST": "n[1-2]", "SLURM_JOB_NUM_NODES": "2"}


def in_one_process(root: Path, name: str, run: RunConfig) -> Path:
    if not (root / name).exists():
        execute(root, name, {stage: root / stage for stage in ("tokens", "order")}, run)
    return root / name


def metrics(run: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (run / "output" / "metrics.jsonl").read_text().splitlines()]


def assert_equal_up_to_rounding(one: Path, several: Path, *names: str, relative: float = 1e-5) -> None:
    """Metrics and tensors of two runs."""
    for alone, together in zip(metrics(one), metrics(several), strict=True):
        assert together.keys() == alone.keys()
        assert list(together.values()) == pytest.approx(list(alone.values()), rel=relative)
    for name in names:
        alone, together = (load_file(run / "output" / name) for run in (one, several))
        assert together.keys() == alone.keys()
        assert all(np.allclose(together[key], alone[key], rtol=1e-3, atol=1e-5) for key in alone)


@pytest.mark.parametrize("name", ["ddp", "fsdp", pytest.param("fsdp_compiled", marks=pytest.mark.slow)])
def test_two_processes_train_as_one_does_up_to_rounding(root: Path, allocation: dict[str, str], name: str) -> None:
    """Of one node by DDP and by FSDP2, and of two by FSDP2 with compiled layers, as GPUs have them."""
    one, two = in_one_process(root, "one", config()), root / name
    assert finish(begin(root, name, **allocation)) == ""
    assert_equal_up_to_rounding(one, two, "step_00000014/model.safetensors", "state/optimizer.safetensors")
    assert (one / "output" / "contexts.json").read_bytes() == (two / "output" / "contexts.json").read_bytes()
    assert json.loads((two / "result.json").read_text())["devices"] == 2
    reported = [json.loads((run / "reported.json").read_text()) for run in (one, two)]
    assert [line[::2] for line in reported[0]] == [line[::2] for line in reported[1]]  # name and step


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ddp_bf16", "fsdp_bf16"])
def test_in_bfloat16_processes_and_shards_compute_as_one_process_does(root: Path, name: str) -> None:
    run = config(training=replace(TRAINING, micro_batch=2, precision="bf16"))
    one = in_one_process(root, "one_bf16", run)
    assert finish(begin(root, name)) == ""
    losses = [[line["train/loss"] for line in metrics(run)] for run in (one, root / name)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)
    assert_equal_up_to_rounding(one, root / name, "step_00000014/model.safetensors", relative=1e-2)


@pytest.mark.slow
def test_two_copies_of_two_shards_each_train_as_one_process_does(root: Path) -> None:
    """Each process accumulates two micro-batches, the first within its copy."""
    one = in_one_process(root, "one_of_8", config(training=replace(TRAINING, global_batch=8)))
    assert finish(begin(root, "hsdp")) == ""
    assert_equal_up_to_rounding(one, root / "hsdp", "step_00000007/model.safetensors")


@pytest.mark.slow
def test_killed_process_ends_all_and_resuming_ends_with_the_same_bytes(root: Path) -> None:
    assert "InfrastructureError: process 1 was killed from outside (signal 9)" in finish(begin(root, "killed"))
    output, work = root / "killed" / "output", root / "killed" / "work"
    members = json.loads((work / MEMBERS).read_text())
    assert len(members) == 2 and not any(map(psutil.pid_exists, members))
    assert list(work.glob("step_*")) and not list(output.iterdir())
    assert finish(begin(root, "killed")) == finish(begin(root, "long")) == ""
    assert files(output) == files(root / "long" / "output")


# What a training that lost a process is said to have failed of.


def test_failure_of_a_group_is_the_first_that_a_process_explained(tmp_path: Path) -> None:
    killed = {1: -9}
    assert isinstance(_failure(tmp_path, killed, memory_kills=1), OutOfMemoryError)
    outside = _failure(tmp_path, killed, memory_kills=0)
    assert isinstance(outside, InfrastructureError)
    assert "process 1 was killed from outside (signal 9)" in str(outside)
    for error, expected in (
        (NumericalError("the loss is NaN"), NumericalError),
        (OSError(errno.ENOSPC, "No space left on device", "/root/step_100"), FullDiskError),
    ):
        report_failure(tmp_path, "process 0", error)
        assert type(_failure(tmp_path, {0: 1})) is expected
    report_failure(tmp_path, "process 0", NumericalError("the loss is NaN"))
    assert isinstance(_failure(tmp_path, killed, memory_kills=1), NumericalError)


def test_every_node_gets_the_variables_of_deterministic_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray starts agents in the environment of its daemon, which knows nothing of the stage.

    Deterministic trainings turn NVLink SHARP off before NCCL starts, since the first collective comes before
    deterministic algorithms are on.
    """
    for name in ("CUBLAS_WORKSPACE_CONFIG", "NCCL_NVLS_ENABLE"):
        monkeypatch.delenv(name, raising=False)
    strict, plain = (
        launch._environment(
            {"processes_a_node": 1, "config": {"training": {"device": "auto", "deterministic": deterministic}}}
        )
        for deterministic in (True, False)
    )
    for environment in (strict, plain):
        assert environment["CUBLAS_WORKSPACE_CONFIG"] == child_environment(EngineConfig())["CUBLAS_WORKSPACE_CONFIG"]
    assert (strict.get("NCCL_NVLS_ENABLE"), plain.get("NCCL_NVLS_ENABLE")) == ("0", None)


def test_all_nodes_train_on_gpus_or_none_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One would meet by gloo the processes that meet by NCCL, and all would wait until their time is over."""
    devices: list[str] = []
    monkeypatch.setattr("paribus.modeling.device.unseen", lambda *_: None)
    monkeypatch.setattr(launch, "carry_out", lambda context, _: devices.append(context.config.training.device) or {})
    cases = {("auto", True): "cuda", ("auto", False): "cpu", ("cpu", True): "cpu", ("cuda", False): "cuda"}
    for device, gpus in cases:
        monkeypatch.setattr(torch.cuda, "is_available", lambda gpus=gpus: gpus)
        context = context_at(
            tmp_path / f"{device}{gpus}", tmp_path / "work", config(training=replace(TRAINING, device=device)), {}
        )
        launch.train_in_processes(context, Processes(8, 16))
    assert devices == list(cases.values())


def test_agent_gets_all_that_the_allocation_has_on_its_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also within a step, whose variables divide GPUs among its tasks."""
    write_program(tmp_path, "srun", f'#!/bin/sh\necho "$@" > {tmp_path}/options\nenv > {tmp_path}/environment\n')
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    for name, value in {"JOB_ID": "7", "GPUS_PER_TASK": "1", "GPU_BIND": "single:1"}.items():
        monkeypatch.setenv(f"SLURM_{name}", value)
    for cpus, gpus, expected in (
        (None, None, []),
        ("64", None, ["--cpus-per-task=64"]),
        ("72(x2),64(x12)", "8", ["--cpus-per-task=64", "--gpus-per-node=8"]),
    ):
        for name, number in (("SLURM_JOB_CPUS_PER_NODE", cpus), ("SLURM_GPUS_ON_NODE", gpus)):
            monkeypatch.setenv(name, number) if number else monkeypatch.delenv(name, raising=False)
        assert SlurmNodes(Processes(8, 2)).run(tmp_path / "job")
        options = [word for word in (tmp_path / "options").read_text().split() if word.startswith("--")]
        assert options == [
            "--nodes=2", "--ntasks=2", "--ntasks-per-node=1", "--kill-on-bad-exit=1", "--overlap", "--cpu-bind=none",
            "--export=ALL", *expected,
        ]  # fmt: skip
    environment = (tmp_path / "environment").read_text()
    assert "SLURM_JOB_ID=7" in environment
    assert "SLURM_GPUS_PER_TASK" not in environment and "SLURM_GPU_BIND" not in environment


# Which signals to its starter reach `srun`.

WAITING_SRUN = """#!/bin/sh
# As SLURM's, which then kills what it started.
trap 'echo forcing job termination > "$HEARD"; exit 1' TERM
touch "$HEARD.begun"
while :; do sleep 0.05; done
"""
STARTER = """
import os, sys
from pathlib import Path
from paribus.errors import InterruptedRunError
from paribus.training.launch import SlurmNodes
from paribus.training.distributed import Processes, passed_on

os.setsid()
try:
    with passed_on(Path(sys.argv[1], "requests_0")):
        SlurmNodes(Processes(1, 2)).run(Path(sys.argv[1]))
except InterruptedRunError:
    sys.exit(7)
"""


def started(directory: Path) -> Program:
    """A process that has begun its `srun`."""
    write_program(directory, "srun", WAITING_SRUN)
    (directory / "starter.py").write_text(STARTER)
    variables = {"PATH": f"{directory}:{os.environ['PATH']}", "HEARD": str(directory / "heard")}
    starter = begin_program([str(directory / "starter.py"), str(directory)], **variables)
    wait_until((directory / "heard.begun").exists, seconds=30)
    return starter


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="Linux alone tells a process that its parent is dead")
def test_agents_are_killed_when_their_starter_dies_and_not_when_it_is_asked_to_end(tmp_path: Path) -> None:
    starter = started(tmp_path)
    (tmp_path / f"{STEPPING}0").touch()
    os.killpg(starter.pid, signal.SIGTERM)
    wait_until((tmp_path / "requests_0").exists, seconds=30)
    time.sleep(0.5)  # in which nothing may happen
    assert starter.poll() is None and not (tmp_path / "heard").exists()
    os.killpg(starter.pid, signal.SIGKILL)
    wait_until((tmp_path / "heard").exists, seconds=30)
