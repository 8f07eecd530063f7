"""The speed of trainings of a model shape that this machine made in an output root."""

import socket
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median, quantiles
from typing import Any

from paribus.config.identity import identity
from paribus.config.schema import RunConfig
from paribus.modeling.counts import parameter_count
from paribus.pipeline.output_root import OutputRoot
from paribus.planning.hours import SECONDS
from paribus.planning.length import trained_length
from paribus.planning.machine import training_device_name, trains_on_gpu
from paribus.planning.stage_times import readable_records

_DECISIVE = ("precision", "deterministic")
"""Settings of training that decide its speed and are part of its identity. Threads, compiled layers and activations
that are computed again are not on record: what is said is that trainings here had theirs."""
_LEAST_SECONDS, _LEAST_STEPS = 5.0, 50
"""Below either the first steps, in which layers are compiled and files first read, are too large a part."""
_TO_SPREAD = 3
"""Trainings from which on it is said how far apart they are."""


@dataclass(frozen=True)
class TrainedSpeed:
    """Training FLOP/s of a device in each of some trainings."""

    flops: tuple[float, ...]

    @property
    def median(self) -> float:
        """In the middle of them."""
        return median(self.flops)

    @property
    def error(self) -> float | None:
        """Half of the distance between the 10th and the 90th percentile, relative to the median."""
        if len(self.flops) < _TO_SPREAD:
            return None
        tenths = quantiles(self.flops, n=10, method="inclusive")
        return (tenths[-1] - tenths[0]) / 2 / self.median


def trained_speed(config: RunConfig, vocabulary: int, root: OutputRoot) -> TrainedSpeed | None:
    """That of trainings like the one that `config` asks for, with `vocabulary` tokens; None where there is none."""
    found = [
        speed
        for record in readable_records(root, "training")
        if _is_alike(record, config, vocabulary) and (speed := _speed(record["result"]))
    ]
    return TrainedSpeed(tuple(found)) if found else None


def _is_alike(record: Mapping[str, Any], config: RunConfig, vocabulary: int) -> bool:
    try:
        result, asked, had = record["result"], identity(config), record["identity"]
        return (
            _on_this_device(record, config)
            and int(result["parameters"]) == parameter_count(config.model, vocabulary)
            and int(result["context_length"]) == config.model.context_length
            and int(result["global_batch"]) == config.training.global_batch
            and int(result["micro_batch"]) == min(config.training.micro_batch, config.training.global_batch)
            and int(result["devices"]) == config.training.processes * config.training.nodes
            and all(had["training"][name] == asked["training"][name] for name in _DECISIVE)
            and had["packing"]["attention"] == asked["packing"]["attention"]
            and {**had["model"], "context_length": None} == {**asked["model"], "context_length": None}
        )
    except (KeyError, TypeError, ValueError):  # `paribus doctor` is for records that lack something
        return False


def _on_this_device(record: Mapping[str, Any], config: RunConfig) -> bool:
    device, on_gpu = str(record["result"]["device"]), trains_on_gpu(config.training)
    if record["provenance"]["host"] != socket.gethostname() or (device != "cpu") != on_gpu:
        return False
    return not on_gpu or device == training_device_name(config.training)


def _speed(result: Mapping[str, Any]) -> float | None:
    """FLOP/s of one device over the steps of a training."""
    try:
        seconds, length = float(result["device_hours"]) * SECONDS, trained_length(dict(result))
    except (KeyError, TypeError, ValueError):
        return None
    steps, flops = length.steps - length.steps_before, length.flops_left
    return flops / seconds if seconds >= _LEAST_SECONDS and steps >= _LEAST_STEPS and flops > 0 else None
