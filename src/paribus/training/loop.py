"""The training loop.

Everything a step does follows from its number: its contexts, its learning rate and, as there is no dropout, no random
numbers. So a run that was killed continues from its last checkpoint exactly.
"""

import time
from dataclasses import dataclass
from functools import partial
from typing import Any

from paribus.config.groups.training import TrainingConfig
from paribus.pipeline.context import Reporter
from paribus.training.batches import Batches, Integers
from paribus.training.budget import Budget
from paribus.training.checkpoint import Checkpoint, Checkpoints
from paribus.training.device import device_name, explained_memory_errors
from paribus.training.meter import Meter
from paribus.training.metrics import MetricsFile
from paribus.training.optimizer import load_optimizer_tensors, make_optimizer, optimizer_tensors
from paribus.training.peaks import peak_flops
from paribus.training.schedule import learning_rate
from paribus.training.step import train_step


@dataclass(frozen=True)
class Run:
    """What a training run works with."""

    training: TrainingConfig
    budget: Budget
    batches: Batches
    targets: Integers
    """Tokens that each context predicts, int64 (count,)."""
    text_bytes: Integers
    """Bytes of source text of the targets of each context, int64 (count,)."""
    document_end: int | None
    """The end-of-document token, if tokens attend within their document only."""
    checkpoints: Checkpoints
    metrics: MetricsFile
    report: Reporter
    accelerator: Any


def train(run: Run, model: Any, resumed: Checkpoint | None) -> float:
    """Train `model`, which holds the weights of `resumed` if that is given, up to the budget; the last step is saved.

    Returns the seconds of training, those before the resumed checkpoint included. Raises NumericalError at the first
    loss that is not finite and OutOfMemoryError where memory does not suffice.
    """
    start, seconds = (resumed.step, resumed.seconds) if resumed else (0, 0.0)
    run.metrics.truncate(start)
    run.checkpoints.discard_after(start)
    with explained_memory_errors(run.training):
        model.to(run.accelerator.device).train()
        optimizer = make_optimizer(model, run.training)
        if resumed:
            load_optimizer_tensors(model, optimizer, resumed.optimizer_tensors())
        return _train_steps(run, model, optimizer, start, seconds)


def _train_steps(run: Run, model: Any, optimizer: Any, start: int, seconds: float) -> float:
    prepared, prepared_optimizer = run.accelerator.prepare(model, optimizer)
    trained = partial(
        train_step, run.accelerator, prepared, prepared_optimizer, training=run.training, document_end=run.document_end
    )
    began, meter = time.monotonic() - seconds, _meter(run)
    meter.begin(start, seconds)
    for step in range(start, run.budget.steps):
        rate = learning_rate(step, run.budget.steps, run.training)
        indices = run.batches.indices(step)
        inputs, targets = run.batches.contexts.rows(indices)
        loss, norm = trained(inputs, targets, step=step + 1, rate=rate)
        meter.record(step + 1, indices, loss=loss, rate=rate, norm=norm)
        if is_checkpoint(step + 1, run.budget.steps, run.training.checkpoint_every):
            run.metrics.sync()
            run.checkpoints.save(step + 1, model, optimizer_tensors(model, optimizer), time.monotonic() - began)
    return time.monotonic() - began


def _meter(run: Run) -> Meter:
    return Meter(
        budget=run.budget,
        batches=run.batches,
        targets=run.targets,
        text_bytes=run.text_bytes,
        metrics=run.metrics,
        report=run.report,
        log_every=run.training.log_every,
        devices=run.accelerator.num_processes,
        peak_flops=peak_flops(device_name(run.accelerator.device)),
    )


def is_checkpoint(step: int, steps: int, every: int) -> bool:
    """Whether a checkpoint is written after 1-based `step`; the last step always has one."""
    return step % every == 0 or step == steps
