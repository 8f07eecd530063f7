"""Real training steps of one model shape, timed: what `paribus plan` reckons hours from.

Run as `python -m paribus.training.fit.probe` with {config, vocab_size, seconds} as JSON on standard input; the answer
is one JSON object on standard output. Weights and tokens are random, which costs what others do.
"""

import json
import math
import os
import sys
import time
from typing import Any

import numpy as np
import torch

from paribus.config.groups.packing import within_documents
from paribus.config.schema import RunConfig
from paribus.config.validate import build_run
from paribus.engine.process_ends import die_with_parent
from paribus.errors import ConfigurationError, ParibusError
from paribus.modeling.build import build_model
from paribus.modeling.counts import training_flops
from paribus.modeling.memory import training_memory, training_setting
from paribus.training.data.prefetch import Batch
from paribus.training.fit.available import available_bytes
from paribus.training.fit.device import explained_memory_errors, make_accelerator
from paribus.training.fit.fit import fit
from paribus.training.processes.parallel import prepare
from paribus.training.step.step import Stepper

STEPS = (3, 50)
"""Fewest and most steps that are timed."""
MICRO_BATCHES = 8
"""Most micro-batches of a timed step: more say nothing else."""
SIDE = 1024
"""Of the matrices whose product says how fast a step can be at best."""


def measure(config: RunConfig, vocab_size: int, seconds: float) -> dict[str, Any]:
    """Time steps of one process for about `seconds`: the seconds of each, and what a step is.

    Raises OutOfMemoryError where the model does not fit here and ConfigurationError where it has no memory formula or
    three steps would take more than three times `seconds` at the speed of plain matrix products.
    """
    accelerator, precision = make_accelerator(config.training)
    micro_batch = _micro_batch(config, vocab_size, accelerator, precision)
    tokens = micro_batch * config.model.context_length
    _refuse_slow(training_flops(config.model, vocab_size, tokens), seconds, accelerator.device, precision)
    with explained_memory_errors(config.training):
        stepper = _stepper(config, vocab_size, accelerator, micro_batch)
        first = _batch(config, vocab_size, micro_batch)
        _time(stepper, first)  # Compiles layers, allocates memory.
        pieces = _pieces(config.training.global_batch // micro_batch, _time(stepper, first), seconds)
        timed = _time_steps(stepper, _batch(config, vocab_size, pieces * micro_batch), seconds)
    return {
        "seconds": timed,
        "tokens": pieces * tokens,
        "precision": precision,
        "micro_batch": micro_batch,
        "threads": torch.get_num_threads(),
    }


def _micro_batch(config: RunConfig, vocab_size: int, accelerator: Any, precision: str) -> int:
    """The one that training would use in the memory there is."""
    gpu, documents = accelerator.device.type == "cuda", within_documents(config.packing)
    how = training_setting(config.training, precision, 1, gpu=gpu, documents=documents)
    if training_memory(config.model, vocab_size, how) is None:
        raise ConfigurationError("there is no formula for the memory of encoder_decoder")
    return fit(config.model, vocab_size, how, available_bytes(accelerator.device, 1)).micro_batch


def _refuse_slow(flops: int, seconds: float, device: torch.device, precision: str) -> None:
    """ConfigurationError where the fewest steps, of `flops` each, cannot be done in three times `seconds`."""
    at_best = STEPS[0] * flops / _matrix_flops(device, precision)
    if at_best > 3 * seconds:
        raise ConfigurationError(
            f"{STEPS[0]} steps of one micro-batch would take at least {at_best:.0f} s (plan.probe_seconds={seconds:g})"
        )


def _matrix_flops(device: torch.device, precision: str) -> float:
    """FLOP/s of a matrix product."""
    kind = torch.bfloat16 if precision == "bf16" else torch.float32
    matrix = torch.ones(SIDE, SIDE, device=device, dtype=kind)
    float((matrix @ matrix)[0, 0])
    began = time.perf_counter()
    float((matrix @ matrix @ matrix)[0, 0])
    return 2 * 2 * SIDE**3 / (time.perf_counter() - began)


def _stepper(config: RunConfig, vocab_size: int, accelerator: Any, micro_batch: int) -> Stepper:
    model = build_model(config.model, vocab_size, 0, eos_id=0)
    document_end = 0 if within_documents(config.packing) else None
    prepared = prepare(accelerator, model, config.training, document_end)
    parameters = list(prepared.model.parameters())
    return Stepper(accelerator, prepared, parameters, micro_batch, config.training.gradient_clip, math.inf)


def _batch(config: RunConfig, vocab_size: int, rows: int) -> Batch:
    """Random tokens, all of them predicted."""
    shape, random = (rows, config.model.context_length), np.random.default_rng(0)
    inputs, targets = (torch.from_numpy(random.integers(0, vocab_size, shape)) for _ in range(2))
    return Batch(0, np.arange(rows), inputs, targets, inputs.numel())


def _pieces(available: int, seconds_a_piece: float, seconds: float) -> int:
    """Micro-batches of a timed step, of which at least ten should be timed."""
    return max(1, min(available, MICRO_BATCHES, int(seconds / 10 / seconds_a_piece)))


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
