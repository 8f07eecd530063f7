"""Devices that the missing stages of a run need and this machine lacks, found before the first of them begins.

Nothing heavy is imported. PyTorch is asked only where a configuration names CUDA, or leaves it to a machine with GPUs.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from paribus.config.groups.evaluation import EvaluationConfig, ScrollsFinetuning
from paribus.config.groups.ordering import MiniLMEmbedder, TransformersEmbedder
from paribus.config.groups.training import TrainingConfig
from paribus.config.schema import RunConfig, divided
from paribus.engine.gpus import ORDER, VISIBLE, reserved, unseen, visible_gpus
from paribus.errors import InfrastructureError, ParibusError, Problem
from paribus.pipeline.failures import Failure
from paribus.pipeline.graph import STAGES, Node, named, to_make
from paribus.pipeline.root import OutputRoot
from paribus.training.fit import missing_for_compilation

HERE = ("basic", "joblib", "submitit_local")
"""Launchers whose jobs run on the machine that the command was given on."""
SHARED = ("auto", "cuda", "gpu")
"""Devices that leave the choice of the GPU to paribus; whoever names one, such as cuda:1, shares it by hand."""


@cache
def visible_devices() -> int:
    """Number of GPUs that PyTorch can use, asked once a process; InfrastructureError where it does not say."""
    code = "from paribus.modeling.device import usable_gpus; print(usable_gpus())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        raise InfrastructureError(f"PyTorch does not say which devices it sees: {last}")
    return int(done.stdout)


@dataclass
class Devices:
    """The devices of this machine."""

    count: Callable[[], int] = visible_devices

    def check(self, config: RunConfig, nodes: Mapping[str, Node]) -> Iterator[Problem]:
        """Yield a problem for each device that a missing stage needs and this machine lacks."""
        store = OutputRoot.of(config).store
        missing = to_make(nodes, store)
        needed = [stage for stage in nodes if stage in missing]
        devices = [device for stage in needed if (device := nodes[stage].stage.device(config)) is not None]
        for path, value in dict.fromkeys(Problem(device.path, device.value) for device in devices):
            yield from self._absent(path, value)
        if "training" in {nodes[stage].stage.artefact for stage in needed}:
            yield from self._processes(config.training)
        if "evaluation" in needed:
            yield from self._tf32("evaluation", config.evaluation)
            yield from self._too_many("evaluation.processes", config.evaluation.processes, config.evaluation.device)
        if "embeddings" in needed and isinstance(config.embedder, TransformersEmbedder | MiniLMEmbedder):
            yield from self._tf32("embedder", config.embedder)
        if "finetuning" in needed and isinstance(config.finetuning, ScrollsFinetuning):
            yield from self._too_many("finetuning.processes", config.finetuning.processes, config.training.device)

    def _absent(self, path: str, device: str) -> Iterator[Problem]:
        kind, _, number = device.partition(":")
        # A PyTorch that sees no GPU is a mistake, which costs days of training and minutes of a search.
        unseen_here = kind == "auto" and path != "neighbours.device" and visible_gpus() and not self.count()
        if unseen_here and (problem := unseen(*pytorch_build())):
            yield Problem(path, problem)
        if kind == "gpu" and not self.count():
            yield Problem(path, "gpu is asked for, and PyTorch sees none here; use auto or cpu")
        if kind == "cuda" and int(number or 0) >= self.count():
            seen = _devices_of_cuda(self.count())
            yield Problem(path, f"{device} is asked for, and PyTorch sees {seen} here; use auto, or cpu")

    def _processes(self, training: TrainingConfig) -> Iterator[Problem]:
        """Yield problems of processes without a GPU or an even share of batch or weights, and of unallocated nodes."""
        in_one = "run it in one (salloc, sbatch, hydra/launcher=submitit_slurm)"
        if training.nodes > 1 and training.nodes_by == "slurm" and "SLURM_JOB_NODELIST" not in os.environ:
            message = f"{training.nodes} are asked for, but this is no SLURM allocation (SLURM_JOB_NODELIST)"
            yield Problem("training.nodes", f"{message}; {in_one}, or take training.nodes_by=ray")
        gpus = self._gpus(training.device)
        if training.nodes == 0 and "SLURM_JOB_NUM_NODES" not in os.environ:
            message = "0 takes the nodes of a SLURM allocation, and this is none (SLURM_JOB_NUM_NODES)"
            yield Problem("training.nodes", f"{message}; {in_one}, or say how many")
        if training.compile == "always" and (lack := missing_for_compilation(gpu=gpus > 0)):
            yield Problem(
                "training.compile", f"always compiles layers, for which {lack} is not here; install it, or use auto"
            )
        if gpus and training.processes > gpus:
            message = f"{training.processes} need a GPU each, and {_devices_of_cuda(gpus)} can be seen here"
            yield Problem("training.processes", f"{message}; use {gpus} or fewer, or training.device=cpu")
            return
        nodes = training.nodes or int(os.environ.get("SLURM_JOB_NUM_NODES", "1"))
        total = (training.processes or max(1, gpus)) * nodes
        path, contexts = divided(training)
        if contexts % total:
            message = f"{contexts} cannot be shared evenly by the {total} processes of this machine"
            yield Problem(path, f"{message}; change it, training.processes or training.nodes")
        given = training.processes and training.nodes
        if training.shard_processes and not given and total % training.shard_processes:
            here = "one process that trains" if total == 1 else f"{total} processes that train"
            message = f"{training.shard_processes} make no groups of the {here} on what devices are here"
            yield Problem(
                "training.shard_processes", f"{message}; use 0, which is all of them, or a divisor of {total}"
            )

    def _too_many(self, path: str, processes: int | None, device: str) -> Iterator[Problem]:
        """Yield a problem for more processes than there are GPUs for them."""
        gpus = self._gpus(device)
        most = min(gpus, 1) if ":" in device else gpus
        if most and (processes or 0) > most:
            yield Problem(path, f"{processes} need a GPU each, and {_devices_of_cuda(most)} can be used here; lower it")

    def _tf32(self, group: str, block: EvaluationConfig | TransformersEmbedder | MiniLMEmbedder) -> Iterator[Problem]:
        """Yield a problem for a precision of GPUs where a CPU computes."""
        if block.precision == "tf32" and block.device in ("auto", "cpu") and not self._gpus(block.device):
            reason = "PyTorch sees none here" if block.device == "auto" else f"{group}.device is cpu"
            yield Problem(f"{group}.precision", f"tf32 is asked for, which GPUs have, and {reason}; use fp32")

    def _gpus(self, device: str) -> int:
        """GPUs that processes of a training can take, 0 for a CPU; PyTorch is asked where the driver lists some."""
        asked_for = device.startswith("cuda") or (device == "auto" and visible_gpus())
        return self.count() if asked_for else 0


def _devices_of_cuda(count: int) -> str:
    return {0: "no CUDA device", 1: "1 CUDA device"}.get(count, f"{count} CUDA devices")


def check_devices(config: RunConfig, nodes: Mapping[str, Node]) -> Failure | None:
    """Return what this machine lacks, unless the command judged it on this very machine."""
    if config.sweep is not None and config.sweep.launcher in HERE:
        return None
    try:
        problems = [*Devices().check(config, nodes)]
    except ParibusError as error:
        return Failure(error.failure_class, str(error))
    return Failure("configuration", "; ".join(map(str, problems))) if problems else None


@contextmanager
def reserve_gpus(stage: str, config: RunConfig, say: Callable[[str], None]) -> Iterator[Mapping[str, str]]:
    """Reserve GPUs for a stage until the block ends; yield the environment in which it sees them, empty without GPUs.

    ConfigurationError when the machine has fewer than the stage needs.
    """
    device = STAGES[stage].device(config)
    count = None if device is None or device.value not in SHARED else device.gpus
    gpus = [] if count is None else visible_gpus()
    # A stage that computes on a CPU, since PyTorch is built for one, waits for no GPU and keeps none from others.
    if device is None or count is None or not gpus or (device.value == "auto" and not visible_devices()):
        yield {}
        return
    if device.fewer_do:
        count = min(count, len(gpus))
    noun = "GPUs" if count != 1 else "GPU"
    waiting = f"[dim]{named(stage)} waits for {count or 'all'} {noun}: other jobs on this machine have them[/dim]"
    with reserved(count, gpus, Path(config.engine.gpu_locks), lambda: say(waiting)) as taken:
        order = {name: value for name, value in ORDER.items() if name not in os.environ}
        yield {VISIBLE: ",".join(gpu.name for gpu in taken), **order}


@cache
def pytorch_build() -> tuple[str, str | None]:
    """The version of PyTorch, and the CUDA that it is built for or None, asked once by a process."""
    code = "import json, torch; print(json.dumps([torch.__version__, torch.version.cuda]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    version, cuda = json.loads(done.stdout)
    return str(version), cuda
