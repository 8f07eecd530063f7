"""What starts an agent of `launch` on each of several nodes: SLURM or Ray."""

import os
import re
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from paribus.config.groups.training import TrainingConfig
from paribus.engine.processes import signalled_at_the_end_of_this
from paribus.errors import ConfigurationError, InfrastructureError
from paribus.training.processes.group import main_program, report_failure
from paribus.training.processes.processes import Processes

OF_TASKS = (
    "SLURM_GPU_BIND", "SLURM_GPUS_PER_TASK", "SLURM_NTASKS_PER_GPU", "SLURM_TRES_BIND", "SLURM_TRES_PER_TASK",
)  # fmt: skip
"""How an allocation has GPUs divided among its tasks, which srun reads; an agent has all of its node."""


class Nodes(Protocol):
    """Several nodes that see the same directories."""

    def first_host(self) -> str:
        """Name or address of the node where agents meet; ConfigurationError where there are no such nodes."""

    def run(self, directory: Path) -> bool:
        """Run an agent for the job in `directory` on each node; whether all ended well. One that fails ends all."""


def launcher_of_nodes(training: TrainingConfig, processes: Processes) -> Nodes:
    """The nodes that the configuration asks for."""
    if training.nodes_by == "slurm":
        return SlurmNodes(processes)
    return RayNodes(processes, gpus=0 if training.device == "cpu" else processes.a_node)


def agent_command(directory: Path) -> list[str]:
    """What runs on each node."""
    return [sys.executable, "-c", main_program("paribus.training.processes.launch"), str(directory)]


@dataclass(frozen=True)
class SlurmNodes:
    """The nodes of the SLURM allocation that this process is in."""

    processes: Processes

    def first_host(self) -> str:
        """The allocation's first node."""
        nodes = os.environ.get("SLURM_JOB_NODELIST")
        if nodes is None or shutil.which("scontrol") is None:
            raise ConfigurationError(
                "training.nodes is above 1, but this is no SLURM allocation (SLURM_JOB_NODELIST and scontrol); run it "
                "in one (salloc, sbatch, hydra/launcher=submitit_slurm), or take training.nodes_by=ray"
            )
        command = ["scontrol", "show", "hostnames", nodes]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[0]

    def run(self, directory: Path) -> bool:
        """By one step of the allocation.

        To srun, SIGTERM means to kill all agents at once: it hears none of what asks this process and its group for a
        checkpoint and the end, but one when this process is dead or waits no more. Killed, it would leave the agents.
        """
        ended = signalled_at_the_end_of_this(signal.SIGTERM)
        command = ["srun", *self._options(), *agent_command(directory)]
        told = {name: value for name, value in os.environ.items() if name not in OF_TASKS}
        # Nothing that another thread may have locked is needed before srun is there.
        with subprocess.Popen(command, env=told, start_new_session=True, preexec_fn=ended) as step:  # noqa: PLW1509
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
        """By a task on each of so many different nodes, this one among them."""
        ray = self._connected()
        here, tasks = ray.get_runtime_context().get_node_id(), []
        alive = {node["NodeID"]: node["Resources"] for node in ray.nodes() if node["Alive"]}
        chosen = [here, *sorted(alive.keys() - {here})][: self.processes.nodes]
        if len(chosen) < self.processes.nodes:
            raise ConfigurationError(
                f"training.nodes is {self.processes.nodes}, but the Ray cluster has {len(chosen)} nodes alive"
            )
        strategy = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
        for number, node in enumerate(chosen):
            gpus = self.gpus if "GPU" in alive[node] else 0
            there = strategy(node_id=node, soft=False)
            task = _agent(ray).options(scheduling_strategy=there, max_retries=0, num_gpus=gpus)
            tasks.append(task.remote([*agent_command(directory), str(number)]))
        # What a signal's handler raises within a call of Ray is raised when that returns: at the end of the training.
        with ThreadPoolExecutor(1) as waiting:
            try:
                return waiting.submit(self._all_well, ray, tasks, directory).result()
            finally:
                # Of those that have ended nothing is left. The processes of the others die with them.
                for task in tasks:
                    ray.cancel(task, force=True)

    def _all_well(self, ray: Any, tasks: list[Any], directory: Path) -> bool:
        """Wait for all agents, or the first that fails; of one that could not say why, Ray does."""
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


def _agent(ray: Any) -> Any:
    """A Ray task that runs an agent and gives its exit code; it takes no share of the cluster's CPUs."""

    def run(command: list[str]) -> int:
        return subprocess.run(command, check=False).returncode

    return ray.remote(num_cpus=0)(run)
