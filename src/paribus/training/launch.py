"""Trains one model in several processes: PyTorch's elastic agent on each node, started through SLURM on several.

Hydra runs in none of them: they read the frozen configuration from a file. A process that dies ends all.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, launch_agent

from paribus.engine.parent import die_with_parent
from paribus.errors import FAILURE_CLASSES, ConfigurationError, InfrastructureError, OutOfMemoryError, ParibusError
from paribus.pipeline.context import JSON, StageContext
from paribus.training.group import REPORTS, RESULT, forwarded, read_job, write_job
from paribus.training.processes import Processes

PORT = 29_511
"""Where the agents of several nodes meet, on the first one; agents of one node take a free port."""


def train_in_processes(context: StageContext, processes: Processes) -> dict[str, JSON]:
    """Train as `train_in_process` does, in several processes; the stage's result.

    Raises what the first failing process raised, OutOfMemoryError for one that was killed.
    """
    directory = context.work / "group"
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    endpoint = "127.0.0.1:0" if processes.nodes == 1 else f"{first_host()}:{PORT}"
    write_job(directory, context, processes, id=uuid.uuid4().hex, endpoint=endpoint)
    with forwarded(directory / REPORTS, context.report):
        if processes.nodes == 1:
            run_node(directory)
        else:
            _run_nodes(directory, processes)
    result: dict[str, JSON] = json.loads((directory / RESULT).read_text(encoding="utf-8"))
    return result


def run_node(directory: Path) -> None:
    """Run this node's processes of the job in `directory` to their end."""
    job = read_job(directory)
    os.environ.update(_environment(job))
    config = LaunchConfig(
        min_nodes=job["nodes"],
        max_nodes=job["nodes"],
        nproc_per_node=job["processes_a_node"],
        run_id=job["id"],
        rdzv_backend="c10d",
        rdzv_endpoint=job["endpoint"],
        max_restarts=0,
        shutdown_timeout=5,
        logs_specs=DefaultLogsSpecs(log_dir=str(directory / "logs")),
    )
    try:
        launch_agent(config, sys.executable, ["-m", "paribus.training.rank", str(directory)])
    except ChildFailedError as error:
        exits = {rank: failure.exitcode for rank, failure in error.failures.items()}
        raise _failure(directory, exits) from error


def _environment(job: dict[str, Any]) -> dict[str, str]:
    """Threads are divided among the processes of the node; accelerate must be told not to look for a GPU."""
    threads = max(1, int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1)) // job["processes_a_node"])
    cpu = job["config"]["training"]["device"] == "cpu"
    return {"OMP_NUM_THREADS": str(threads)} | ({"ACCELERATE_USE_CPU": "true"} if cpu else {})


def _failure(directory: Path, exits: Mapping[int, int]) -> ParibusError:
    """The first failure that a process explained; one that was killed could not. `exits` are exit codes by rank."""
    files = directory.glob("failed_*.json")
    reported = sorted((json.loads(path.read_text(encoding="utf-8")) for path in files), key=lambda said: said["time"])
    explained = [said for said in reported if said["class"] != "infrastructure"]
    killed = [rank for rank, code in exits.items() if code == -signal.SIGKILL]
    if killed and not explained:
        return OutOfMemoryError(
            f"process {killed[0]} was killed (signal 9), most often for want of memory; all others were ended"
        )
    for said in explained or reported:
        return FAILURE_CLASSES[said["class"]](f"{said['message']} (process {said['rank']})")
    listed = ", ".join(f"process {rank} with exit code {code}" for rank, code in exits.items()) or "an agent of a node"
    return InfrastructureError(f"training died without a word: {listed}; all processes were ended")


def srun_command(directory: Path, nodes: int) -> list[str]:
    """What starts an agent on each node of the SLURM allocation; one that fails ends the others."""
    one_a_node = [f"--nodes={nodes}", f"--ntasks={nodes}", "--ntasks-per-node=1"]
    agent = [sys.executable, "-m", "paribus.training.launch", str(directory)]
    return ["srun", *one_a_node, "--kill-on-bad-exit=1", *agent]


def first_host() -> str:
    """The allocation's first node; ConfigurationError outside an allocation."""
    nodes = os.environ.get("SLURM_JOB_NODELIST")
    if nodes is None or shutil.which("scontrol") is None:
        raise ConfigurationError(
            "training.nodes is above 1, but this is no SLURM allocation (SLURM_JOB_NODELIST and scontrol); submit the "
            "run with hydra/launcher=submitit_slurm or sbatch, or set training.nodes=1"
        )
    shown = subprocess.run(["scontrol", "show", "hostnames", nodes], capture_output=True, text=True, check=True)
    return shown.stdout.split()[0]


def _run_nodes(directory: Path, processes: Processes) -> None:
    done = subprocess.run(srun_command(directory, processes.nodes), check=False)
    if done.returncode:
        raise _failure(directory, {})


def main() -> int:
    """An agent of one of several nodes; 0 unless one of its processes failed."""
    die_with_parent()
    try:
        run_node(Path(sys.argv[1]))
    except ParibusError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
