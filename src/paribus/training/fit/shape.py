"""What a probe times in one process in place of a training: of one that shares weights, a model that fits."""

import dataclasses
from collections.abc import Sequence
from statistics import median

from paribus.config.groups.model import DecoderModel
from paribus.config.schema import RunConfig
from paribus.errors import ConfigurationError, OutOfMemoryError
from paribus.modeling.memory import TrainingSetting
from paribus.training.fit.fit import fit


def one_process(config: RunConfig) -> RunConfig:
    """The training of one process of `config`, by itself."""
    training = config.training
    share = training.global_batch // (max(1, training.processes) * max(1, training.nodes))
    alone = dataclasses.replace(
        training, processes=1, nodes=1, parallel="ddp", shard_processes=0, global_batch=max(1, share)
    )
    return dataclasses.replace(config, training=alone)


def depths(model: DecoderModel, vocab_size: int, how: TrainingSetting, available: int | None) -> tuple[int, ...]:
    """Numbers of layers to time: all of them where they fit into one process, else the most that do and half of these.

    `how` is of one process. ConfigurationError where not even two layers fit.
    """
    if _fits(model, vocab_size, how, available):
        return (model.layers,)
    few, many = 1, model.layers
    while many - few > 1:
        middle = (few + many) // 2
        fits = _fits(dataclasses.replace(model, layers=middle), vocab_size, how, available)
        few, many = (middle, many) if fits else (few, middle)
    if few < 2:
        raise ConfigurationError("not even two of its layers fit into the memory of one process here")
    return few // 2, few


def _fits(model: DecoderModel, vocab_size: int, how: TrainingSetting, available: int | None) -> bool:
    try:
        fitted = fit(model, vocab_size, how, available)
    except OutOfMemoryError:
        return False
    return fitted.micro_batch == how.micro_batch


def extrapolated(timed: Sequence[Sequence[float]], measured: Sequence[int], layers: int) -> list[float]:
    """Seconds of steps of all `layers` from those of steps at the `measured` numbers of layers, each layer alike."""
    if len(measured) == 1:
        return list(timed[0])
    (short, long), (few, many) = timed, measured
    # By medians: one slow step of the shorter model would make a step of all layers quicker than one of some.
    each = max(0.0, (median(long) - median(short)) / (many - few))
    return [slow + each * (layers - many) for slow in long]
