"""Launch of a stage in several processes: PyTorch's elastic agent on each node, on several started by SLURM or Ray.

Hydra runs in none of them: they read the frozen configuration from a file. A process that dies ends all.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import traceback
import uuid
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, launch_agent

from paribus.engine.gpus import CUBLAS, NCCL
from paribus.engine.processes import (
    THREADS,
    die_with_parent,
    ignore_requests,
    out_of_memory_kills,
    signal_on_thread_exit,
)
from paribus.errors import (
    FAILURE_CLASSES,
    ConfigurationError,
    FullDiskError,
    InfrastructureError,
    OutOfMemoryError,
    ParibusError,
)
from paribus.modeling.device import resolve_device
from paribus.stage import JSON, StageContext
from paribus.store.files import read_object
from paribus.training.distributed import (
    AGENT,
    JOB,
    REPORTS,
    RESULT,
    Processes,
    forwarded,
    main_program,
    passed_on,
    read_failures,
    report_failure,
    write_job,
)
from paribus.training.micro_batch import MicroBatch
from paribus.training.parallel import COLLECTIVE

TRAINING = "paribus.training.train"
NETWORKS = Path("/sys/class/net")
LOOPBACK = "127.0.0.1"
SECONDS_TO_END = 5.0
PORTS = range(20_000, 30_000)
"""Ports at which the agents of several nodes meet, on the first one; agents of one node take a free port."""


def train_in_processes(context: StageContext, processes: Processes) -> dict[str, JSON]:
    """Train as `train_in_process` does, in several processes; the stage's result.

    Where one of them runs out of memory and halves the micro-batch, all begin again from the last checkpoint. Raises
    as `carry_out` does.
    """
    training = context.config.training
    if training.device == "auto":
        # A GPU in all processes or in none of them, as here. One on a node that has lost its GPUs, or that alone has
        # any, would wait by gloo for others that wait by NCCL, or the other way round.
        training = replace(training, device=resolve_device("auto", "training.device").type)
    context = replace(context, config=replace(context.config, training=training))
    micro_batch = MicroBatch.of(context.work, training, processes.total)
    while True:
        before = micro_batch.halvings
        try:
            return carry_out(context, processes)
        except OutOfMemoryError as error:
            if micro_batch.halvings == before:
                raise
            context.listener.message(f"{error}: all processes begin again from the last checkpoint")


def carry_out(context: StageContext, processes: Processes, member: str = TRAINING) -> dict[str, JSON]:
    """Run `main` of the module `member`, which calls `run_worker`, in several processes; the stage's result.

    On several nodes `member` must be the module that trains. Raises what the first failing process raised; for one that
    was killed OutOfMemoryError where the kernel did so for want of memory, else InfrastructureError.
    """
    directory = context.work / "group"
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    identifier = uuid.uuid4()
    job = partial(write_job, directory, context, processes, id=identifier.hex)
    training = context.config.training
    with forwarded(directory / REPORTS, context.listener):
        if processes.nodes == 1:
            job(endpoint=free_endpoint())
            run_node(directory, 0, member)
        else:
            gpus = 0 if training.device == "cpu" else processes.a_node
            nodes = SlurmNodes(processes) if training.nodes_by == "slurm" else RayNodes(processes, gpus)
            job(endpoint=f"{nodes.first_host()}:{PORTS[identifier.int % len(PORTS)]}")
            # Neither SLURM nor Ray passes signals on: the processes of the first agent read that file.
            with passed_on(_requests_file(directory, 0)):
                succeeded = nodes.run(directory)
            if not succeeded:
                raise _failure(directory, {})
    return read_object(directory / RESULT)


def free_endpoint() -> str:
    """Endpoint of the store of a single agent: a free port of this machine."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return f"{LOOPBACK}:{probe.getsockname()[1]}"


def run_node(directory: Path, number: int, member: str = TRAINING) -> None:
    """Run the processes of node `number` of the job in `directory` to their end; the agents meet on node 0."""
    job = read_object(directory / JOB)
    requests = _requests_file(directory, number)
    config = LaunchConfig(
        min_nodes=job["nodes"],
        max_nodes=job["nodes"],
        nproc_per_node=job["processes_a_node"],
        run_id=job["id"],
        # The first process of node 0 is the main one. By PyTorch's default, `c10d`, the node is first whose name comes
        # first in the alphabet, it takes up to seconds to find out who called it, and an agent fails that starts a
        # minute before that of node 0, as from a file system that is busy.
        rdzv_backend="static",
        rdzv_endpoint=job["endpoint"],
        rdzv_configs={"rank": number, "timeout": int(COLLECTIVE.total_seconds())},
        max_restarts=0,
        shutdown_timeout=5,
        # By SIGTERM the agent would end its processes in their step: it is passed on to them instead.
        signals_to_handle="SIGINT,SIGHUP,SIGQUIT",
        logs_specs=DefaultLogsSpecs(log_dir=str(directory / "logs")),
    )
    killed_before = out_of_memory_kills()
    command = ["-c", main_program(member), str(directory), str(requests)]
    try:
        with _with_environment(_environment(job)), passed_on(requests):
            launch_agent(config, sys.executable, command)
    except ChildFailedError as error:
        exits = {rank: failure.exitcode for rank, failure in error.failures.items()}
        raise _failure(directory, exits, out_of_memory_kills() - killed_before) from error


def _requests_file(directory: Path, number: int) -> Path:
    """File to which the agent of node `number` appends requests by signals; read on the same node only."""
    return directory / f"requests_{number}"


@contextmanager
def _with_environment(environment: Mapping[str, str]) -> Iterator[None]:
    """Add `environment` to that of this process in the block, for the processes that are started there.

    It is restored afterwards: another attempt starts from here too, and would divide the divided threads again.
    """
    before = dict(os.environ)
    os.environ.update(environment)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _environment(job: dict[str, Any]) -> dict[str, str]:
    """Environment variables of a node's processes, which lack those of the stage where Ray starts them.

    Threads are divided among the processes of the node, and on a CPU accelerate must not look for a GPU. A process gets
    the number of its agent, so that it ends even where the agent died before Linux was asked to report that.
    """
    threads = max(1, int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1)) // job["processes_a_node"])
    training = job["config"]["training"]
    # All of them: PyTorch takes as many threads as MKL was given, whatever OpenMP was.
    variables = dict.fromkeys(THREADS, str(threads)) | {AGENT: str(os.getpid())}
    variables |= dict(CUBLAS) | (dict(NCCL) if training["deterministic"] else {})
    variables |= {"ACCELERATE_USE_CPU": "true"} if training["device"] == "cpu" else {}
    # The network of NCCL for gloo too, which else takes the one of the host's name: loopback for many.
    network = os.environ.get("NCCL_SOCKET_IFNAME", "").removeprefix("=")
    known = network and "GLOO_SOCKET_IFNAME" not in os.environ and (NETWORKS / network).exists()
    return variables | ({"GLOO_SOCKET_IFNAME": network} if known else {})


def _failure(directory: Path, exits: Mapping[int, int], memory_kills: int = 0) -> ParibusError:
    """The first failure that a process explained; that of a killed one where others explain only infrastructure.

    `exits` are exit codes by rank, `memory_kills` counts the processes that the kernel of this node killed meanwhile.
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
    """Run the agent of a node, given the job's directory and the node's number; 1 if it or a process of it failed.

    A step of SLURM runs the same command on every node, so there the number is left out.
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


TASK_VARIABLES = (
    "SLURM_GPU_BIND", "SLURM_GPUS_PER_TASK", "SLURM_NTASKS_PER_GPU", "SLURM_TRES_BIND", "SLURM_TRES_PER_TASK",
)  # fmt: skip
"""Variables by which an allocation divides GPUs among its tasks; an agent gets all of its node, so srun lacks them."""


def agent_command(directory: Path) -> list[str]:
    return [sys.executable, "-c", main_program("paribus.training.launch"), str(directory)]


@dataclass(frozen=True)
class SlurmNodes:
    """The nodes of the SLURM allocation that this process is in."""

    processes: Processes

    def first_host(self) -> str:
        """The allocation's first node, where agents meet; ConfigurationError where there is none."""
        nodes = os.environ.get("SLURM_JOB_NODELIST")
        if nodes is None or shutil.which("scontrol") is None:
            raise ConfigurationError(
                "training.nodes is above 1, but this is no SLURM allocation (SLURM_JOB_NODELIST and scontrol); run it "
                "in one (salloc, sbatch, hydra/launcher=submitit_slurm), or take training.nodes_by=ray"
            )
        command = ["scontrol", "show", "hostnames", nodes]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[0]

    def run(self, directory: Path) -> bool:
        """Run an agent for the job in `directory` on each node, by one step of the allocation; True if all succeeded.

        On SIGTERM srun kills all agents at once. So it has a session of its own, which signals to this process and its
        group do not reach, and gets SIGTERM when this process dies or stops waiting; SIGKILL would leave the agents.
        """
        prepare = signal_on_thread_exit(signal.SIGTERM)
        command = ["srun", *self._options(), *agent_command(directory)]
        env = {name: value for name, value in os.environ.items() if name not in TASK_VARIABLES}
        # Before srun replaces the child, nothing is needed that another thread may have locked.
        with subprocess.Popen(command, env=env, start_new_session=True, preexec_fn=prepare) as step:  # noqa: PLW1509
            try:
                code = step.wait()
            except BaseException:
                step.terminate()
                raise
        return code == 0

    def _options(self) -> list[str]:
        """One agent a node, with all that the allocation has there.

        A step gets one CPU a task unless it asks for more, whatever the allocation asked for (since SLURM 22.05). A job
        of submitit is a step itself, which holds everything: without --overlap this one would wait for its end. The
        cores that a step binds its task to stand in SLURM_CPU_BIND, which srun reads: agents are bound to none. A job
        of `--export=NONE` tells srun by SLURM_EXPORT_ENV to begin without the environment: they get all of it.
        """
        nodes = self.processes.nodes
        options = [f"--nodes={nodes}", f"--ntasks={nodes}", "--ntasks-per-node=1", "--kill-on-bad-exit=1"]
        options += ["--overlap", "--cpu-bind=none", "--export=ALL"]
        # By node as 64(x2),32: each task may have no more than the smallest node.
        cpus = re.findall(r"(?:^|,)(\d+)", os.environ.get("SLURM_JOB_CPUS_PER_NODE", ""))
        gpus = re.findall(r"^\d+$", os.environ.get("SLURM_GPUS_ON_NODE", ""))
        options += [f"--cpus-per-task={min(map(int, cpus))}"] if cpus else []
        return options + ([f"--gpus-per-node={gpus[0]}"] if gpus else [])


@dataclass(frozen=True)
class RayNodes:
    """Nodes of the Ray cluster that RAY_ADDRESS names, or that this machine belongs to."""

    processes: Processes
    gpus: int
    """GPUs that an agent asks for where the node has any; Ray hides them from tasks that ask for none."""

    def first_host(self) -> str:
        """The address of this machine, which must be one of the cluster's and have a process of its own."""
        ray = self._connected()
        return str(ray.util.get_node_ip_address())

    def run(self, directory: Path) -> bool:
        """Run agents as `SlurmNodes.run` does, by a task on each of so many different nodes, this one among them."""

        def run_agent(command: list[str]) -> int:
            return subprocess.run(command, check=False).returncode

        ray = self._connected()
        this_node, tasks = ray.get_runtime_context().get_node_id(), []
        alive = {node["NodeID"]: node["Resources"] for node in ray.nodes() if node["Alive"]}
        chosen = [this_node, *sorted(alive.keys() - {this_node})][: self.processes.nodes]
        if len(chosen) < self.processes.nodes:
            raise ConfigurationError(
                f"training.nodes is {self.processes.nodes}, but the Ray cluster has {len(chosen)} nodes alive"
            )
        strategy = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
        for number, node in enumerate(chosen):
            gpus = self.gpus if "GPU" in alive[node] else 0
            affinity = strategy(node_id=node, soft=False)
            task = ray.remote(num_cpus=0)(run_agent)  # which takes no share of the cluster's CPUs
            task = task.options(scheduling_strategy=affinity, max_retries=0, num_gpus=gpus)
            tasks.append(task.remote([*agent_command(directory), str(number)]))
        # What a signal's handler raises within a call of Ray is raised when that returns: at the end of the training.
        with ThreadPoolExecutor(1) as waiting:
            try:
                succeeded = waiting.submit(self._all_succeed, ray, tasks, directory).result()
                # The others end by themselves once one has; what ends as it is cancelled makes Ray abort this process.
                ray.wait(tasks, num_returns=len(tasks), timeout=SECONDS_TO_END)
                return succeeded
            finally:
                # Tasks that have ended leave nothing to cancel. The processes of the others die with them.
                for task in tasks:
                    ray.cancel(task, force=True)

    def _all_succeed(self, ray: Any, tasks: list[Any], directory: Path) -> bool:
        """Wait for all agents, or the first that fails; if it could not report why, Ray's error is reported."""
        while tasks:
            done, tasks = ray.wait(tasks)
            try:
                if ray.get(done[0]):
                    return False
            except ray.exceptions.RayError as error:
                reason = next(filter(None, map(str.strip, str(error).splitlines())), type(error).__name__)
                report_failure(directory, "the task of an agent", InfrastructureError(reason))
                return False
        return True

    def _connected(self) -> Any:
        try:
            import ray
        except ImportError as error:
            raise ConfigurationError("training.nodes_by=ray needs Ray: pip install ray") from error
        if not ray.is_initialized():
            try:
                ray.init(address=os.environ.get("RAY_ADDRESS", "auto"), log_to_driver=False)
            except ConnectionError as error:
                raise ConfigurationError(
                    f"training.nodes_by=ray finds no Ray cluster ({error}); ray start one, or set RAY_ADDRESS"
                ) from error
        return ray
