"""What the missing stages of a run compute on, and what of that this machine lacks: found before the first of them.

Nothing heavy is imported. PyTorch is asked only where a configuration names CUDA, or leaves it to a machine with GPUs.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from paribus.config.byte_sizes import divided
from paribus.config.groups.embedding import MiniLMEmbedder, TransformersEmbedder
from paribus.config.groups.evaluation import EvaluationConfig
from paribus.config.groups.finetuning import ScrollsFinetuning
from paribus.config.groups.training import TrainingConfig
from paribus.config.schema import RunConfig
from paribus.engine.gpus import lacking, unseen, visible_gpus
from paribus.errors import ParibusError
from paribus.pipeline.graph import Node, to_make
from paribus.pipeline.making.visible_devices import pytorch_build, visible_devices
from paribus.pipeline.output_root import OutputRoot
from paribus.pipeline.record.failure import Failure

HERE = ("basic", "joblib", "submitit_local")
"""Launchers whose jobs run on the machine that the command was given on."""
Problem = tuple[str, str]


@dataclass
class Devices:
    """The devices of this machine; PyTorch is asked once."""

    ask: Callable[[], int] = visible_devices
    _seen: int | None = field(default=None, init=False)

    def problems(self, config: RunConfig, nodes: Mapping[str, Node]) -> Iterator[Problem]:
        """(config path, what is wrong and what would be right) of each device that a missing stage needs."""
        store = OutputRoot.of(config).store
        left = to_make(nodes, store)
        needed = [stage for stage in nodes if stage in left]
        devices = [device for stage in needed if (device := nodes[stage].stage.device(config)) is not None]
        for path, value in dict.fromkeys((device.path, device.value) for device in devices):
            yield from self._absent(path, value)
        if "training" in {nodes[stage].stage.artefact for stage in needed}:
            yield from self._processes(config.training)
        if "evaluation" in needed:
            yield from self._tf32("evaluation", config.evaluation)
            yield from self._asked("evaluation.processes", config.evaluation.processes, config.evaluation.device)
        if "embeddings" in needed and isinstance(config.embedder, TransformersEmbedder | MiniLMEmbedder):
            yield from self._tf32("embedder", config.embedder)
        if "finetuning" in needed and isinstance(config.finetuning, ScrollsFinetuning):
            yield from self._asked("finetuning.processes", config.finetuning.processes, config.training.device)

    def _absent(self, path: str, device: str) -> Iterator[Problem]:
        kind, _, number = device.partition(":")
        # A PyTorch that sees no GPU is a mistake, which costs days of training and minutes of a search.
        if kind == "auto" and path != "neighbours.device" and visible_gpus() and not self._count():
            yield from ((path, problem) for problem in [unseen(*pytorch_build())] if problem)
        if kind == "gpu" and not self._count():
            yield path, "gpu is asked for, and PyTorch sees none here; use auto or cpu"
        if kind == "cuda" and int(number or 0) >= self._count():
            seen = _devices_of_cuda(self._count())
            yield path, f"{device} is asked for, and PyTorch sees {seen} here; use auto, or cpu"

    def _processes(self, training: TrainingConfig) -> Iterator[Problem]:
        """Processes that find no GPU or cannot share the batch or the weights, and nodes that nobody has allocated."""
        if training.nodes > 1 and training.nodes_by == "slurm" and "SLURM_JOB_NODELIST" not in os.environ:
            yield (
                "training.nodes",
                f"{training.nodes} are asked for, but this is no SLURM allocation (SLURM_JOB_NODELIST); run it in one "
                "(salloc, sbatch, hydra/launcher=submitit_slurm), or take training.nodes_by=ray",
            )
        gpus = self._gpus(training.device)
        if training.nodes == 0 and "SLURM_JOB_NUM_NODES" not in os.environ:
            yield (
                "training.nodes",
                "0 takes the nodes of a SLURM allocation, and this is none (SLURM_JOB_NUM_NODES); run it in one "
                "(salloc, sbatch, hydra/launcher=submitit_slurm), or say how many",
            )
        if training.compile == "always" and (lack := lacking(gpu=gpus > 0)):
            yield "training.compile", f"always compiles layers, for which {lack} is not here; install it, or use auto"
        if gpus and training.processes > gpus:
            message = f"{training.processes} need a GPU each, and {_devices_of_cuda(gpus)} can be seen here"
            yield "training.processes", f"{message}; use {gpus} or fewer, or training.device=cpu"
            return
        nodes = training.nodes or int(os.environ.get("SLURM_JOB_NUM_NODES", "1"))
        total = (training.processes or max(1, gpus)) * nodes
        path, contexts = divided(training)
        if contexts % total:
            message = f"{contexts} cannot be shared evenly by the {total} processes of this machine"
            yield path, f"{message}; change it, training.processes or training.nodes"
        given = training.processes and training.nodes
        if training.shard_processes and not given and total % training.shard_processes:
            here = "one process that trains" if total == 1 else f"{total} processes that train"
            message = f"{training.shard_processes} make no groups of the {here} on what devices are here"
            yield "training.shard_processes", f"{message}; use 0, which is all of them, or a divisor of {total}"

    def _asked(self, path: str, processes: int | None, device: str) -> Iterator[Problem]:
        """More processes than there are GPUs for them."""
        gpus = self._gpus(device)
        most = min(gpus, 1) if ":" in device else gpus
        if most and (processes or 0) > most:
            yield path, f"{processes} need a GPU each, and {_devices_of_cuda(most)} can be used here; lower it"

    def _tf32(self, group: str, of: EvaluationConfig | TransformersEmbedder | MiniLMEmbedder) -> Iterator[Problem]:
        """A precision of GPUs where a CPU computes."""
        if of.precision == "tf32" and of.device in ("auto", "cpu") and not self._gpus(of.device):
            reason = "PyTorch sees none here" if of.device == "auto" else f"{group}.device is cpu"
            yield f"{group}.precision", f"tf32 is asked for, which GPUs have, and {reason}; use fp32"

    def _gpus(self, device: str) -> int:
        """GPUs that processes of a training can take, 0 for a CPU: with `auto` too those that PyTorch sees.

        It is not asked where the driver lists none; where it is built for CPUs, it sees none of those listed.
        """
        wanted = device.startswith("cuda") or (device == "auto" and visible_gpus())
        return self._count() if wanted else 0

    def _count(self) -> int:
        if self._seen is None:
            self._seen = self.ask()
        return self._seen


def _devices_of_cuda(count: int) -> str:
    return {0: "no CUDA device", 1: "1 CUDA device"}.get(count, f"{count} CUDA devices")


def unfit(config: RunConfig, nodes: Mapping[str, Node]) -> Failure | None:
    """What this machine lacks, unless whoever launched the job judged it: the command, on this very machine."""
    if config.sweep is not None and config.sweep.launcher in HERE:
        return None
    try:
        found = [f"{path}: {message}" for path, message in Devices().problems(config, nodes)]
    except ParibusError as error:
        return Failure(error.failure_class, str(error))
    return Failure("configuration", "; ".join(found)) if found else None
