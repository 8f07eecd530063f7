"""The speed of training of one model shape on this machine: measured in a child process, once, and remembered.

What is remembered lies in `cache/probes` of the output root, by everything that decides the speed. A file that cannot
be read is as good as none.
"""

import importlib.metadata
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from paribus.config.groups.packing import within_documents
from paribus.config.identity import digest, everything
from paribus.config.schema import RunConfig
from paribus.errors import ParibusError
from paribus.modeling.parameters import resolve_model
from paribus.pipeline.making.execute import child_environment
from paribus.pipeline.making.gpu_slots import gpu_slots
from paribus.planning.machine import training_device_name, trains_on_gpu
from paribus.store import files
from paribus.training.fit.shape import one_process

SECONDS_TO_START = {True: 240.0, False: 60.0}
"""What a probe may take beside its steps on a GPU, where layers are compiled first, and on a CPU."""
FEWEST_STEPS = 3


class ProbeError(ParibusError):
    """A shape that could not be probed, and why."""


@dataclass(frozen=True)
class Probe:
    """What training steps took."""

    seconds: tuple[float, ...]
    """Of each step."""
    tokens: int
    """Positions that a step computes."""
    device: str
    precision: str
    micro_batch: int
    threads: int
    layers: tuple[int, ...]
    """Numbers of layers that were timed: all of the model, or two from which its steps were reckoned."""
    when: str

    @property
    def tokens_per_second(self) -> float:
        """At the median step."""
        return self.tokens / median(self.seconds)

    @property
    def error(self) -> float:
        """Half of the distance between the 10th and the 90th percentile of steps, relative to the median."""
        tenths = quantiles(self.seconds, n=10, method="inclusive")
        return (tenths[-1] - tenths[0]) / 2 / median(self.seconds)


def probe_key(config: RunConfig, vocabulary: int) -> dict[str, Any]:
    """Everything that decides how fast `config` trains, as far as it can be known without PyTorch."""
    training = one_process(config).training
    decisive = ("precision", "compile", "activation_checkpointing", "micro_batch", "global_batch")
    sharing = ("processes", "nodes", "shard_processes", "reshard_after_forward")
    shared = {name: getattr(config.training, name) for name in sharing if config.training.parallel == "fsdp"}
    return {
        "device": training_device_name(training),
        "threads": _threads(config) if not trains_on_gpu(training) else 0,
        "model": everything(resolve_model(config.model, vocabulary)),
        "vocab_size": vocabulary,
        "documents": within_documents(config.packing),
        "training": {name: getattr(training, name) for name in decisive} | shared,
        "torch": importlib.metadata.version("torch"),
    }


def _threads(config: RunConfig) -> int:
    """Processes of a node divide the threads."""
    threads = config.engine.threads or os.cpu_count() or 1
    return max(1, threads // max(1, config.training.processes))


def probe_path(cache: Path, key: Mapping[str, Any]) -> Path:
    """Where the probe of a key is, or would be."""
    return cache / "probes" / f"{digest(dict(key))}.json"


def read_probe(cache: Path, key: Mapping[str, Any]) -> Probe | None:
    """The probe that was remembered; None where there is none or its file is damaged."""
    try:
        stored = json.loads(probe_path(cache, key).read_text(encoding="utf-8"))
        if stored["key"] != key:
            return None
        return _probe(stored["probe"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _probe(stored: Mapping[str, Any]) -> Probe:
    """Raises ValueError, KeyError or TypeError for anything but what was written."""
    seconds = [float(value) for value in stored["seconds"]]
    layers = tuple(int(number) for number in stored["layers"])
    numbers = [*seconds, *layers, *(int(stored[name]) for name in ("tokens", "micro_batch", "threads"))]
    whole = isinstance(stored["seconds"], list) and len(seconds) >= FEWEST_STEPS and len(layers) > 0
    if not whole or not all(math.isfinite(number) and number > 0 for number in numbers):
        raise ValueError("no seconds of steps")
    return Probe(
        seconds=tuple(seconds),
        tokens=int(stored["tokens"]),
        device=str(stored["device"]),
        precision=str(stored["precision"]),
        micro_batch=int(stored["micro_batch"]),
        threads=int(stored["threads"]),
        layers=layers,
        when=str(stored["when"]),
    )


def measure(config: RunConfig, vocabulary: int, cache: Path, say: Callable[[str], None]) -> Probe:
    """Probe the shape of `config` and remember it; `say` is told of waiting for a GPU that jobs here have.

    Raises ProbeError where a probe is not possible.
    """
    key = probe_key(config, vocabulary)
    with gpu_slots(
        "training", one_process(config), lambda text: say("waiting for a GPU: jobs on this machine have all")
    ) as slots:
        answer = _child(config, vocabulary, slots)
    if "problem" in answer:
        raise ProbeError(str(answer["problem"]))
    measured = answer | {"device": key["device"], "when": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")}
    path = probe_path(cache, key)
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write_json(path, {"key": key, "probe": measured})
    return _probe(measured)


def _child(config: RunConfig, vocabulary: int, slots: Mapping[str, str]) -> dict[str, Any]:
    """What the child says; a problem where it died or ran out of time."""
    limit = config.plan.probe_seconds + SECONDS_TO_START[trains_on_gpu(config.training)]
    job = {"config": everything(config), "vocab_size": vocabulary, "seconds": config.plan.probe_seconds}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "paribus.training.fit.probe"],
            input=json.dumps(job),
            capture_output=True,
            text=True,
            timeout=limit,
            check=False,
            env={**child_environment(replace(config.engine, threads=_threads(config))), **slots},
        )
    except subprocess.TimeoutExpired:
        return {"problem": f"{FEWEST_STEPS} steps were not done within {limit:.3g} s"}
    if done.returncode:
        return {"problem": f"its process died: {_last_line(done.stderr) or f'exit status {done.returncode}'}"}
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")
