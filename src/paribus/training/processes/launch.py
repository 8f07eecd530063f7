"""Carries out a stage in several processes: PyTorch's elastic agent on each node, on several started by SLURM or Ray.

Hydra runs in none of them: they read the frozen configuration from a file. A process that dies ends all.
"""

import json
import os
import shutil
import signal
import sys
import traceback
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, launch_agent

from paribus.engine.gpus import CUBLAS, NCCL
from paribus.engine.processes import THREADS, die_with_parent, ignore_requests, out_of_memory_kills
from paribus.errors import FAILURE_CLASSES, FullDiskError, InfrastructureError, OutOfMemoryError, ParibusError
from paribus.stage import JSON, StageContext
from paribus.training.fit.device import COLLECTIVE
from paribus.training.fit.micro_batch import MicroBatch
from paribus.training.processes.group import (
    AGENT,
    REPORTS,
    RESULT,
    forwarded,
    main_program,
    read_failures,
    read_job,
    report_failure,
    write_job,
)
from paribus.training.processes.lone_agent import alone
from paribus.training.processes.nodes import launcher_of_nodes
from paribus.training.processes.processes import Processes, same_device
from paribus.training.processes.requests import passed_on

TRAINING = "paribus.training.processes.rank"
NETWORKS = Path("/sys/class/net")
PORTS = range(20_000, 30_000)
"""Where the agents of several nodes meet, on the first one; agents of one node take a free port."""


def train_in_processes(context: StageContext, processes: Processes) -> dict[str, JSON]:
    """Train as `train_in_process` does, in several processes; the stage's result.

    Where one of them runs out of memory and halves the micro-batch, all begin again from the last checkpoint. Raises
    as `carry_out` does.
    """
    training = context.config.training
    training = replace(training, device=same_device(training.device))
    context = replace(context, config=replace(context.config, training=training))
    micro_batch = MicroBatch.of(context.work, training, processes.total)
    while True:
        before = micro_batch.halvings
        try:
            return carry_out(context, processes)
        except OutOfMemoryError as error:
            if micro_batch.halvings == before:
                raise
            context.report.message(f"{error}: all processes begin again from the last checkpoint")


def carry_out(context: StageContext, processes: Processes, member: str = TRAINING) -> dict[str, JSON]:
    """Run `main` of the module `member`, which calls `run_member`, in several processes; the stage's result.

    Of several nodes it is the one that trains. Raises what the first failing process raised; for one that was killed
    OutOfMemoryError where the kernel did so for want of memory, else InfrastructureError.
    """
    directory = context.work / "group"
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    identifier = uuid.uuid4()
    job = partial(write_job, directory, context, processes, id=identifier.hex)
    with forwarded(directory / REPORTS, context.report):
        if processes.nodes == 1:
            job()
            run_node(directory, 0, member)
        else:
            nodes = launcher_of_nodes(context.config.training, processes)
            job(endpoint=f"{nodes.first_host()}:{PORTS[identifier.int % len(PORTS)]}")
            # Neither SLURM nor Ray passes signals on: the processes of the first agent read that file.
            with passed_on(_requests(directory, 0)):
                well = nodes.run(directory)
            if not well:
                raise _failure(directory, {})
    result: dict[str, JSON] = json.loads((directory / RESULT).read_text(encoding="utf-8"))
    return result


def run_node(directory: Path, number: int, member: str = TRAINING) -> None:
    """Run the processes of node `number` of the job in `directory` to their end; the agents meet on node 0."""
    job = read_job(directory)
    requests = _requests(directory, number)
    config = LaunchConfig(
        min_nodes=job["nodes"],
        max_nodes=job["nodes"],
        nproc_per_node=job["processes_a_node"],
        run_id=job["id"],
        **(_meeting(job["endpoint"], number) if job["nodes"] > 1 else alone()),
        max_restarts=0,
        **_patience(),
        # By SIGTERM the agent would end its processes in their step: it is passed on to them instead.
        signals_to_handle="SIGINT,SIGHUP,SIGQUIT",
        logs_specs=DefaultLogsSpecs(log_dir=str(directory / "logs")),
    )
    killed_before = out_of_memory_kills()
    command = ["-c", main_program(member), str(directory), str(requests)]
    try:
        with _within(_environment(job)), passed_on(requests):
            launch_agent(config, sys.executable, command)
    except ChildFailedError as error:
        exits = {rank: failure.exitcode for rank, failure in error.failures.items()}
        raise _failure(directory, exits, out_of_memory_kills() - killed_before) from error


def _patience() -> dict[str, Any]:
    """Seconds that processes have for their end once one of them failed; PyTorch 2.11 cannot be told, and gives 30."""
    return {"shutdown_timeout": 5} if "shutdown_timeout" in LaunchConfig.__dataclass_fields__ else {}


def _meeting(endpoint: str, number: int) -> dict[str, Any]:
    """How agents meet on node 0, whose first process is the main one.

    PyTorch's default, `c10d`, has the node be first whose name comes first in the alphabet, and an agent that starts a
    minute before that of node 0, as from a file system that is busy, fails.
    """
    how = {"rank": number, "timeout": int(COLLECTIVE.total_seconds())}
    return {"rdzv_backend": "static", "rdzv_endpoint": endpoint, "rdzv_configs": how}


def _requests(directory: Path, number: int) -> Path:
    """Where the agent of node `number` writes what signals ask of it; read on the same node only."""
    return directory / f"requests_{number}"


@contextmanager
def _within(environment: Mapping[str, str]) -> Iterator[None]:
    """In the block, have the processes that are started from here this environment too; none of it stays.

    Those of another attempt are started from here as well, and would divide threads that are divided.
    """
    before = dict(os.environ)
    os.environ.update(environment)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _environment(job: dict[str, Any]) -> dict[str, str]:
    """Threads are divided among the processes of the node; accelerate must be told not to look for a GPU.

    What Ray starts has not the environment of the stage. A process learns who starts it, so that it ends where that one
    has died before it could ask Linux to be told.
    """
    threads = max(1, int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1)) // job["processes_a_node"])
    training = job["config"]["training"]
    # All of them: PyTorch takes as many threads as MKL was told, whatever OpenMP was.
    own = dict.fromkeys(THREADS, str(threads)) | {AGENT: str(os.getpid())}
    own |= dict(CUBLAS) | (dict(NCCL) if training["deterministic"] else {})
    return own | ({"ACCELERATE_USE_CPU": "true"} if training["device"] == "cpu" else {}) | _network()


def _network() -> dict[str, str]:
    """The network that NCCL was told, for gloo too, which else takes the one of the host's name: loopback for many."""
    told = os.environ.get("NCCL_SOCKET_IFNAME", "").removeprefix("=")
    known = told and "GLOO_SOCKET_IFNAME" not in os.environ and (NETWORKS / told).exists()
    return {"GLOO_SOCKET_IFNAME": told} if known else {}


def _failure(directory: Path, exits: Mapping[int, int], memory_kills: int = 0) -> ParibusError:
    """The first failure that a process explained; one that was killed could not.

    `exits` are exit codes by rank, `memory_kills` how many processes the kernel of this node killed meanwhile.
    """
    failures = read_failures(directory)
    killed = [rank for rank, code in exits.items() if code == -signal.SIGKILL]
    if killed and not any(failure["class"] != "infrastructure" for failure in failures):
        if memory_kills > 0:
            return OutOfMemoryError(
                f"the kernel killed process {killed[0]} for want of memory (signal 9); all others were ended"
            )
        return InfrastructureError(
            f"process {killed[0]} was killed from outside (signal 9), and not by the kernel for want of memory; all "
            "others were ended"
        )
    if failures and failures[0]["full_disk"]:
        return FullDiskError(failures[0]["message"])
    if failures:
        return FAILURE_CLASSES[failures[0]["class"]](failures[0]["message"])
    listed = ", ".join(f"process {rank} with exit code {code}" for rank, code in exits.items()) or "an agent of a node"
    return InfrastructureError(f"its processes died without a word: {listed}; all processes were ended")


def main() -> int:
    """The agent of a node, by the job's directory and the node's number; 0 unless one of its processes failed.

    A step of SLURM, which runs the same command on every node, leaves out the number.
    """
    die_with_parent()
    ignore_requests()
    directory, number = Path(sys.argv[1]), int((*sys.argv, os.environ.get("SLURM_NODEID", "0"))[2])
    try:
        run_node(directory, number)
    except Exception as error:
        report_failure(directory, f"the agent of node {number}", error)
        if not isinstance(error, ParibusError):
            traceback.print_exc()
        return 1
    return 0
