"""Training speed, from which hours are estimated: stated, or measured once on this machine by a probe.

A probe is a child process, so that torch is imported there alone. Its measurement is cached in `cache/probes` of the
output root, by everything that decides the speed; a file that cannot be read is ignored.
"""

import importlib.metadata
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Annotated, Any

from annotated_types import Gt, MinLen
from pydantic import FiniteFloat, TypeAdapter

from paribus.config.fields import Positive
from paribus.config.groups.execution import PlanConfig
from paribus.config.groups.model import EncoderDecoderModel
from paribus.config.groups.ordering import within_documents
from paribus.config.groups.training import TrainingConfig
from paribus.config.identity import digest, to_plain
from paribus.config.schema import RunConfig
from paribus.config.units import format_count
from paribus.engine.gpus import visible_gpus
from paribus.errors import ParibusError
from paribus.modeling.parameters import parameter_count, resolve_model, training_flops
from paribus.pipeline.devices import reserve_gpus
from paribus.pipeline.execute import child_environment
from paribus.pipeline.root import OutputRoot
from paribus.store import files
from paribus.store.provenance import gpu_names
from paribus.training.fit import one_process
from paribus.training.metrics import peak_flops

Say = Callable[[str], None]
FEWEST_STEPS = 3
NOT_PROBED = "not probed yet"
NEVER_PROBED = "no probe measures an encoder-decoder"


@dataclass(frozen=True)
class Speed:
    """Speed at which one device trains a model shape, and the source of the figure."""

    flops_per_second: float | None
    """None where it is unknown."""
    source: str

    def hours(self, flops: float) -> float | None:
        """Hours of one device for `flops`; None where the speed is unknown."""
        return None if self.flops_per_second is None else flops / self.flops_per_second / 3600


@dataclass
class Throughputs:
    """Speeds of model shapes, each determined once; `say` gets a message before a probe and before a wait for a GPU."""

    root: OutputRoot
    say: Say
    _speeds: dict[str, Speed] = field(default_factory=dict, init=False)

    def of(self, config: RunConfig, vocabulary: int) -> Speed:
        """The speed at which `config` trains a model with `vocabulary` tokens."""
        plan = config.plan
        has_peak = plan.device is not None or plan.peak_tflops is not None
        if plan.throughput == "stated" or (plan.throughput == "auto" and has_peak):
            return _stated_speed(plan)
        key = probe_key(config, vocabulary)
        name = digest(key)
        if name not in self._speeds:
            self._speeds[name] = self._probed(config, vocabulary, key)
        return self._speeds[name]

    def _probed(self, config: RunConfig, vocabulary: int, key: dict[str, Any]) -> Speed:
        shape = shape_name(config, vocabulary)
        cached = read_probe(self.root.cache, key)
        if cached:
            return _throughput_of(config, vocabulary, cached, f"probed {cached.when}, remembered")
        if config.plan.throughput != "probe" and config.plan.max_device_hours is None:
            unsupported = isinstance(config.model, EncoderDecoderModel)
            return Speed(None, f"{shape}: {NEVER_PROBED if unsupported else NOT_PROBED}")
        self.say(f"probing {shape} on this machine: about {config.plan.probe_seconds:.0f} s of training steps")
        try:
            probe = run_probe(config, vocabulary, self.root.cache, self.say)
            return _throughput_of(config, vocabulary, probe, "probed now")
        except ProbeError as error:
            return Speed(None, f"{shape} cannot be probed here: {error}")


def _stated_speed(plan: PlanConfig) -> Speed:
    known = peak_flops(plan.device) if plan.device else None
    peak = plan.peak_tflops * 1e12 if plan.peak_tflops is not None else known
    assert peak is not None, "configurations without a peak are refused"
    name = plan.device or "a device"
    source = f"stated: {plan.utilisation:.0%} (plan.utilisation) of the {peak / 1e12:g} TFLOP/s of {name}"
    return Speed(plan.utilisation * peak, source.replace("%", " %"))


def shape_name(config: RunConfig, vocabulary: int) -> str:
    """Description of a model shape."""
    parameters = format_count(parameter_count(config.model, vocabulary))
    return f"{config.model.kind} of {parameters} parameters, {config.model.context_length:,} tokens a context"


@dataclass(frozen=True)
class Probe:
    """Measured training steps."""

    seconds: Annotated[tuple[Annotated[FiniteFloat, Gt(0)], ...], MinLen(FEWEST_STEPS)]
    """Seconds of each step."""
    tokens: Positive
    """Positions that a step computes."""
    device: str
    precision: str
    micro_batch: Positive
    threads: Positive
    when: str

    @property
    def tokens_per_second(self) -> float:
        """Tokens a second at the median step."""
        return self.tokens / median(self.seconds)


def _throughput_of(config: RunConfig, vocabulary: int, probe: Probe, when: str) -> Speed:
    flops = training_flops(config.model, vocabulary, probe.tokens) / probe.tokens * probe.tokens_per_second
    where = f"{probe.device}, {probe.precision}, micro-batch {probe.micro_batch}"
    threads = "" if trains_on_gpu(config.training) else f", {probe.threads} thread{'s' if probe.threads > 1 else ''}"
    speed = f"{probe.tokens_per_second:,.0f} tokens/s on {where}{threads}"
    return Speed(flops, f"{shape_name(config, vocabulary)}: {speed}; {when}")


SECONDS_TO_START = {True: 240.0, False: 60.0}
"""Seconds that a probe may take beside its steps on a GPU, where layers are compiled first, and on a CPU."""


class ProbeError(ParibusError):
    """A shape that could not be probed, and why."""


def probe_key(config: RunConfig, vocabulary: int) -> dict[str, Any]:
    """Everything that decides how fast `config` trains, as far as it is known without importing PyTorch."""
    training = one_process(config).training
    decisive = ("precision", "compile", "activation_checkpointing", "micro_batch", "global_batch")
    sharing = ("processes", "nodes", "shard_processes", "reshard_after_forward")
    shared = {name: getattr(config.training, name) for name in sharing if config.training.parallel == "fsdp"}
    return {
        "device": training_device_name(training),
        "threads": _threads_of_process(config) if not trains_on_gpu(training) else 0,
        "model": to_plain(resolve_model(config.model, vocabulary)),
        "vocab_size": vocabulary,
        "documents": within_documents(config.packing),
        "training": {name: getattr(training, name) for name in decisive} | shared,
        "torch": importlib.metadata.version("torch"),
    }


def _threads_of_process(config: RunConfig) -> int:
    return max(1, (config.engine.threads or os.cpu_count() or 1) // max(1, config.training.processes))


def probe_path(cache: Path, key: Mapping[str, Any]) -> Path:
    """Path of the probe of a key."""
    return cache / "probes" / f"{digest(dict(key))}.json"


def read_probe(cache: Path, key: Mapping[str, Any]) -> Probe | None:
    """The cached probe; None where there is none or its file is damaged."""
    try:
        stored = json.loads(probe_path(cache, key).read_text(encoding="utf-8"))
        return TypeAdapter(Probe).validate_python(stored["probe"]) if stored["key"] == key else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def run_probe(config: RunConfig, vocabulary: int, cache: Path, say: Callable[[str], None]) -> Probe:
    """Probe a shape and cache the result; `say` gets a message if it waits for a GPU. Raises ProbeError on failure."""
    key = probe_key(config, vocabulary)
    with reserve_gpus(
        "training", one_process(config), lambda text: say("waiting for a GPU: jobs on this machine have all")
    ) as slots:
        answer = _run_child(config, vocabulary, slots)
    if "problem" in answer:
        raise ProbeError(str(answer["problem"]))
    measured = answer | {"device": key["device"], "when": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")}
    path = probe_path(cache, key)
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write_json(path, {"key": key, "probe": measured})
    return TypeAdapter(Probe).validate_python(measured)


def _run_child(config: RunConfig, vocabulary: int, slots: Mapping[str, str]) -> dict[str, Any]:
    """Answer of the child; a problem where it died or ran out of time."""
    limit = config.plan.probe_seconds + SECONDS_TO_START[trains_on_gpu(config.training)]
    job = {"config": to_plain(config), "vocab_size": vocabulary, "seconds": config.plan.probe_seconds}
    try:
        child = subprocess.run(
            [sys.executable, "-m", "paribus.training.probe"],
            input=json.dumps(job),
            capture_output=True,
            text=True,
            timeout=limit,
            check=False,
            env={**child_environment(replace(config.engine, threads=_threads_of_process(config))), **slots},
        )
    except subprocess.TimeoutExpired:
        return {"problem": f"{FEWEST_STEPS} steps were not done within {limit:.3g} s"}
    if child.returncode:
        last = next((line.strip() for line in reversed(child.stderr.splitlines()) if line.strip()), "")
        return {"problem": f"its process died: {last or f'exit status {child.returncode}'}"}
    answer: dict[str, Any] = json.loads(child.stdout)
    return answer


NVIDIA = Path("/proc/driver/nvidia/version")
"""Exists if NVIDIA's driver is loaded."""
PROCESSORS = Path("/proc/cpuinfo")
"""File in which Linux describes its processors."""


def trains_on_gpu(training: TrainingConfig, driver: Path = NVIDIA) -> bool:
    """True if a run would train on a GPU; with device=auto, if one seems to be present and visible."""
    if training.device != "auto":
        return training.device != "cpu"
    return driver.exists() and os.environ.get("CUDA_VISIBLE_DEVICES") not in ("", "-1")


def with_device_counts(training: TrainingConfig) -> TrainingConfig:
    """Fill in processes and nodes that are 0: one process a visible GPU, and the nodes of the allocation."""
    gpus = len(visible_gpus()) if trains_on_gpu(training) else 0
    nodes = training.nodes or int(os.environ.get("SLURM_JOB_NUM_NODES", "1"))
    return replace(training, processes=training.processes or max(1, gpus), nodes=nodes)


def training_device_name(training: TrainingConfig, processors: Path = PROCESSORS) -> str:
    """Name of the device a run would train on, as the driver or the kernel gives it."""
    if trains_on_gpu(training):
        number = training.device.partition(":")[2]
        names = gpu_names()
        index = int(number) if number.isdigit() else 0
        return names[index] if index < len(names) else training.device
    description = processors.read_text(encoding="utf-8") if processors.is_file() else ""
    model = re.search(r"^model name\s*:\s*(.*)$", description, re.MULTILINE)  # the kernel gives none for ARM
    return model[1] if model else platform.processor() or platform.machine()
