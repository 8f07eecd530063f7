"""Several processes that train one model."""

import dataclasses
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import torch
from process_scenarios import MEMBERS
from safetensors.numpy import load_file

from paribus.config.groups.execution import EngineConfig
from paribus.errors import ConfigurationError
from paribus.pipeline.execute import child_environment
from paribus.training import launch
from paribus.training.distributed import Processes, resolve_processes
from paribus.training.launch import SlurmNodes
from support import forked
from support.stages import context_at, files
from support.training_inputs import TRAINING, config, execute, write_inputs
from support.training_processes import SCENARIOS


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("processes")
    write_inputs(directory)
    return directory


SRUN = """#!/bin/sh
# Starts what follows the options once a node, as SLURM does, on this machine.
case "$1 $2" in "--nodes=2 --ntasks=2") ;; *) exit 64 ;; esac
while :; do case "$1" in --*) shift ;; *) break ;; esac; done
SLURM_NODEID=0 "$@" & SLURM_NODEID=1 "$@" & wait
"""


@pytest.fixture(scope="module")
def allocation(root: Path) -> dict[str, str]:
    """The environment of an allocation of two nodes that are both this machine; a real SLURM is not to be had here."""
    tools = root / "tools"
    tools.mkdir()
    for name, script in (("srun", SRUN), ("scontrol", "#!/bin/sh\necho localhost; echo localhost\n")):
        (tools / name).write_text(script)
        (tools / name).chmod(0o755)
    return {"PATH": f"{tools}:{os.environ['PATH']}", "SLURM_JOB_NODELIST": "n[1-2]", "SLURM_JOB_NUM_NODES": "2"}


def trained(root: Path, name: str, **environment: str) -> str:
    """What running a scenario prints on standard output."""
    environment = os.environ | {"OMP_NUM_THREADS": "2", "PYTHONPATH": forked.PATHS} | environment
    done = forked.run([str(SCENARIOS), str(root), name], env=environment, members=4)
    assert done.returncode == 0, done.stderr
    return done.stdout


def said(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def metrics(root: Path, name: str) -> list[dict[str, float]]:
    lines = (root / name / "output" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def one(root: Path) -> Path:
    execute(root, "one", {stage: root / stage for stage in ("tokens", "order")})
    return root / "one"


@pytest.fixture(scope="module")
def one_bf16(root: Path) -> Path:
    execute(
        root,
        "one_bf16",
        {stage: root / stage for stage in ("tokens", "order")},
        config(training=dataclasses.replace(TRAINING, micro_batch=2, precision="bf16")),
    )
    return root / "one_bf16"


@pytest.mark.parametrize("name", ["ddp_bf16", "fsdp_bf16"])
def test_in_bfloat16_processes_and_shards_compute_as_one_process_does(root: Path, one_bf16: Path, name: str) -> None:
    assert trained(root, name) == ""
    losses = [[line["train/loss"] for line in metrics(root, run)] for run in ("one_bf16", name)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)
    alone, together = (
        load_file(root / run / "output" / "step_00000014" / "model.safetensors") for run in ("one_bf16", name)
    )
    assert all(np.allclose(together[key], alone[key], rtol=1e-3, atol=1e-5) for key in alone)


def test_two_copies_of_two_shards_each_train_as_one_process_does(root: Path) -> None:
    """Each process accumulates two micro-batches, the first within its copy."""
    inputs = {stage: root / stage for stage in ("tokens", "order", "contexts")}
    execute(root, "one_of_8", inputs, config(training=dataclasses.replace(TRAINING, global_batch=8)))
    assert trained(root, "hsdp") == ""
    for alone, together in zip(metrics(root, "one_of_8"), metrics(root, "hsdp"), strict=True):
        assert list(together.values()) == pytest.approx(list(alone.values()), rel=1e-5)
    weights = [next((root / name / "output").glob("step_*7/model.safetensors")) for name in ("one_of_8", "hsdp")]
    alone, together = map(load_file, weights)
    assert all(np.allclose(together[key], alone[key], rtol=1e-3, atol=1e-5) for key in alone)


@pytest.mark.parametrize("name", ["ddp", "fsdp", "fsdp_compiled"])
def test_two_processes_train_as_one_does_up_to_rounding(
    root: Path, one: Path, allocation: dict[str, str], name: str
) -> None:
    """Of one node by DDP, of two by FSDP2, and of one by FSDP2 with compiled layers, as GPUs have them."""
    assert trained(root, name, **allocation) == ""
    for alone, together in zip(metrics(root, "one"), metrics(root, name), strict=True):
        assert together.keys() == alone.keys()
        assert list(together.values()) == pytest.approx(list(alone.values()), rel=1e-5)
    outputs = one / "output", root / name / "output"
    assert outputs[0].joinpath("contexts.json").read_bytes() == outputs[1].joinpath("contexts.json").read_bytes()
    for file in ("step_00000014/model.safetensors", "state/optimizer.safetensors"):
        alone, together = (load_file(output / file) for output in outputs)
        assert together.keys() == alone.keys()
        assert all(np.allclose(together[key], alone[key], rtol=1e-3, atol=1e-5) for key in alone)
    assert said(root / name / "result.json")["devices"] == 2
    reported = [[(name, step) for name, _, step in said(run / "reported.json")] for run in (one, root / name)]
    assert reported[0] == reported[1]


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ({}, []),
        ({"SLURM_JOB_CPUS_PER_NODE": "64"}, ["--cpus-per-task=64"]),
        (
            {"SLURM_JOB_CPUS_PER_NODE": "72(x2),64(x12)", "SLURM_GPUS_ON_NODE": "8"},
            ["--cpus-per-task=64", "--gpus-per-node=8"],
        ),
    ],
)
def test_an_agent_gets_all_that_the_allocation_has_on_its_node_also_within_a_step(
    given: dict[str, str], asked: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    srun = tmp_path / "srun"
    srun.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/asked\nenv > {tmp_path}/told\n')
    srun.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    for name in ("SLURM_JOB_CPUS_PER_NODE", "SLURM_GPUS_ON_NODE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURM_GPUS_PER_TASK", "1")
    monkeypatch.setenv("SLURM_GPU_BIND", "single:1")
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    assert SlurmNodes(Processes(8, 2)).run(tmp_path / "job")
    options = [word for word in (tmp_path / "asked").read_text().split() if word.startswith("--")]
    assert options[:4] == ["--nodes=2", "--ntasks=2", "--ntasks-per-node=1", "--kill-on-bad-exit=1"]
    assert options[4:] == ["--overlap", "--cpu-bind=none", "--export=ALL", *asked]
    told = (tmp_path / "told").read_text()
    assert "SLURM_JOB_ID=7" in told and "SLURM_GPUS_PER_TASK" not in told and "SLURM_GPU_BIND" not in told


def test_processes_of_every_node_are_told_what_cublas_needs_to_add_in_one_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ray starts agents in the environment of its daemon, which knows nothing of the stage."""
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    job = {"processes_a_node": 1, "config": {"training": {"device": "auto", "deterministic": False}}}
    told = launch._environment(job)["CUBLAS_WORKSPACE_CONFIG"]
    assert told == child_environment(EngineConfig())["CUBLAS_WORKSPACE_CONFIG"]


def test_the_switches_between_gpus_sum_nothing_in_a_deterministic_training(monkeypatch: pytest.MonkeyPatch) -> None:
    """Told before NCCL begins: the first collective of a training is before deterministic algorithms are asked for."""
    monkeypatch.delenv("NCCL_NVLS_ENABLE", raising=False)
    told = {}
    for strict in (True, False):
        job = {"processes_a_node": 8, "config": {"training": {"device": "auto", "deterministic": strict}}}
        told[strict] = launch._environment(job).get("NCCL_NVLS_ENABLE")
    assert told == {True: "0", False: None}


@pytest.mark.parametrize(
    ("device", "gpus", "told"),
    [("auto", True, "cuda"), ("auto", False, "cpu"), ("cpu", True, "cpu"), ("cuda", False, "cuda")],
)
def test_all_nodes_train_on_gpus_or_none_does(
    device: str, gpus: bool, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One would meet by gloo the processes that meet by NCCL, and all would wait until their time is over."""
    asked: list[str] = []

    def carry_out(context: Any, processes: Processes) -> dict[str, Any]:
        asked.append(context.config.training.device)
        return {}

    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpus)
    monkeypatch.setattr("paribus.modeling.device.unseen", lambda *_: None)
    monkeypatch.setattr(launch, "carry_out", carry_out)
    alone = config(training=dataclasses.replace(TRAINING, device=device))
    launch.train_in_processes(context_at(tmp_path / "output", tmp_path / "work", alone, {}), Processes(8, 16))
    assert asked == [told]


def test_processes_that_cannot_share_a_batch_are_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"training\.global_batch is 4, which 3 processes cannot share evenly"):
        resolve_processes(dataclasses.replace(TRAINING, processes=3))


def test_shards_that_make_up_no_whole_are_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"training\.shard_processes is 3, of which no groups make up 4 proc"):
        resolve_processes(dataclasses.replace(TRAINING, processes=4, parallel="fsdp", shard_processes=3))


def test_a_killed_process_ends_all_and_resuming_ends_with_the_same_bytes(root: Path) -> None:
    assert "InfrastructureError: process 1 was killed from outside (signal 9)" in trained(root, "killed")
    members = said(root / "killed" / "work" / MEMBERS)
    assert len(members) == 2 and not any(map(psutil.pid_exists, members))
    assert not list((root / "killed" / "output").iterdir())
    assert list((root / "killed" / "work").glob("step_*"))
    assert trained(root, "killed") == trained(root, "long") == ""
    assert files(root / "killed" / "output") == files(root / "long" / "output")


def test_a_process_that_failed_ends_at_once_whatever_its_end_would_wait_for(root: Path) -> None:
    """PyTorch's agent ends the others when a process is gone; NCCL's end may wait for these, as here for a minute."""
    assert "InfrastructureError: RuntimeError: an illegal memory access (process 1)" in trained(root, "stuck")
    assert time.monotonic() - float((root / "stuck" / "work" / "group" / "failed_at").read_text()) < 40
