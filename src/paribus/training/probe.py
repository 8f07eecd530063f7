"""Real training steps of one model shape, timed, from which `paribus plan` computes hours.

Run as `python -m paribus.training.probe` with {config, vocab_size, seconds} as JSON on standard input; the answer
is one JSON object on standard output. Weights and tokens are random, which costs what others do.
"""

import json
import math
import os
import sys
import time
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from paribus.config.groups.model import EncoderDecoderModel
from paribus.config.groups.ordering import within_documents
from paribus.config.schema import RunConfig
from paribus.config.validate import build_run
from paribus.engine.processes import die_with_parent
from paribus.errors import ConfigurationError, OutOfMemoryError, ParibusError
from paribus.modeling.memory import TrainingSetting, training_setting
from paribus.modeling.models import build_model
from paribus.modeling.parameters import training_flops
from paribus.training.data import Batch
from paribus.training.fit import fit, one_process
from paribus.training.losses import DocumentEnd
from paribus.training.micro_batch import available_bytes
from paribus.training.parallel import explained_memory_errors, make_accelerator, prepare
from paribus.training.step import Stepper

STEPS = (3, 50)
"""Fewest and most steps that are timed."""
MICRO_BATCHES = 8
"""Most micro-batches of a timed step: more say nothing else."""
SIDE = 1024
"""Side of the matrices whose product says how fast a step can be at best."""


def measure(config: RunConfig, vocab_size: int, seconds: float) -> dict[str, Any]:
    """Time steps of one process of a training for about `seconds`: the seconds of each, and what a step is.

    Raises OutOfMemoryError where the model does not fit here and ConfigurationError where it has no memory formula,
    where one process alone does not hold what each of several that share the weights would compute, or where three
    steps would take more than three times `seconds` at the speed of plain matrix products.
    """
    if isinstance(config.model, EncoderDecoderModel):
        raise ConfigurationError("there is no formula for the memory of encoder_decoder")
    alone = one_process(config)
    accelerator, precision = make_accelerator(alone.training)
    available = available_bytes(accelerator.device)
    # The one that each process of the training would use in the memory there is.
    configured = _setting(config, accelerator, precision)
    micro_batch = fit(config.model, vocab_size, configured, available).micro_batch
    how = _setting(alone, accelerator, precision, micro_batch)
    try:
        held = fit(config.model, vocab_size, how, available).micro_batch == micro_batch
    except OutOfMemoryError:
        held = False
    if not held:
        raise ConfigurationError(
            f"one process that has all weights cannot hold a micro-batch of {micro_batch}, as each of those that share "
            "them does; state the speed by plan.device or plan.peak_tflops"
        )
    tokens = micro_batch * alone.model.context_length
    _refuse_slow(training_flops(alone.model, vocab_size, tokens), seconds, accelerator.device, precision)
    with explained_memory_errors(alone.training):
        stepper = _stepper(alone, vocab_size, accelerator, micro_batch)
        first = _batch(alone, vocab_size, micro_batch)
        _time(stepper, first)  # Compiles layers, allocates memory.
        # Micro-batches of a timed step, of which at least ten should be timed.
        wanted = min(MICRO_BATCHES, int(seconds / 10 / _time(stepper, first)))
        pieces = max(1, min(alone.training.global_batch // micro_batch, wanted))
        timed = _time_steps(stepper, _batch(alone, vocab_size, pieces * micro_batch), seconds)
    return {
        "seconds": timed,
        "tokens": pieces * tokens,
        "precision": precision,
        "micro_batch": micro_batch,
        "threads": torch.get_num_threads(),
    }


def _setting(config: RunConfig, accelerator: Any, precision: str, micro_batch: int | None = None) -> TrainingSetting:
    """`micro_batch` in place of the configured one, if it is given."""
    training, gpu = config.training, accelerator.device.type == "cuda"
    processes = max(1, training.processes) * max(1, training.nodes)
    given = training if micro_batch is None else replace(training, micro_batch=micro_batch)
    return training_setting(given, precision, processes, gpu=gpu, documents=within_documents(config.packing))


def _refuse_slow(flops: int, seconds: float, device: torch.device, precision: str) -> None:
    """ConfigurationError where the fewest steps, of `flops` each, cannot be done in three times `seconds`."""
    matrix = torch.ones(SIDE, SIDE, device=device, dtype=torch.bfloat16 if precision == "bf16" else torch.float32)
    float((matrix @ matrix)[0, 0])
    began = time.perf_counter()
    float((matrix @ matrix @ matrix)[0, 0])
    at_best = STEPS[0] * flops / (2 * 2 * SIDE**3 / (time.perf_counter() - began))
    if at_best > 3 * seconds:
        raise ConfigurationError(
            f"{STEPS[0]} steps of one micro-batch would take at least {at_best:.0f} s (plan.probe_seconds={seconds:g})"
        )


def _stepper(config: RunConfig, vocab_size: int, accelerator: Any, micro_batch: int) -> Stepper:
    model = build_model(config.model, vocab_size, 0, eos_id=0)
    document_end = DocumentEnd(0) if within_documents(config.packing) else None
    prepared = prepare(accelerator, model, config.training, document_end)
    parameters = list(prepared.model.parameters())
    return Stepper(accelerator, prepared, parameters, micro_batch, config.training.gradient_clip, math.inf)


def _batch(config: RunConfig, vocab_size: int, rows: int) -> Batch:
    """Random tokens, all of them predicted."""
    shape, random = (rows, config.model.context_length), np.random.default_rng(0)
    inputs, targets = (torch.from_numpy(random.integers(0, vocab_size, shape)) for _ in range(2))
    return Batch(0, np.arange(rows), inputs, targets, inputs.numel())


def _time_steps(stepper: Stepper, batch: Batch, seconds: float) -> list[float]:
    timed: list[float] = []
    while len(timed) < STEPS[0] or (len(timed) < STEPS[1] and sum(timed) < seconds):
        timed.append(_time(stepper, batch))
    return timed


def _time(stepper: Stepper, batch: Batch) -> float:
    began = time.perf_counter()
    stepper.step(batch, 1e-6)
    if stepper.accelerator.device.type == "cuda":
        torch.cuda.synchronize(stepper.accelerator.device)
    return time.perf_counter() - began


def main() -> int:
    """Answer the job on standard input, with a problem where the shape is not for this machine."""
    die_with_parent()
    with os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8") as channel:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # Libraries print where they like.
        job = json.load(sys.stdin)
        try:
            answer = measure(build_run(job["config"]), job["vocab_size"], job["seconds"])
        except ParibusError as error:
            answer = {"problem": str(error)}
        json.dump(answer, channel)
    return 0


if __name__ == "__main__":
    sys.exit(main())
