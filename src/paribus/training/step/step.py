"""One optimizer step over one global batch.

The loss is the sum over target tokens divided by the target tokens of the global batch, so neither the micro-batch, nor
the number of processes, nor where padding stands changes more than rounding, unless the model has dropout: what that
drops depends on both.
"""

import math
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch

from paribus.errors import is_out_of_memory
from paribus.training.data.prefetch import Batch
from paribus.training.processes.parallel import Prepared
from paribus.training.step.dropout import DropoutSeeds


class StepMemoryError(Exception):
    """Memory ran out before the weights were touched: the step may be computed again in smaller pieces."""


@dataclass(frozen=True)
class StepResult:
    """What one step gave."""

    loss: float
    """Mean over the global batch's target tokens, nats."""
    gradient_norm: float
    """Global norm before clipping."""
    problem: str | None = None
    """Why the weights were left as they were: the quantity that was not finite or exploded, and its value."""


@dataclass(frozen=True)
class Stepper:
    """What every step works with."""

    accelerator: Any
    prepared: Prepared
    parameters: list[torch.nn.Parameter]
    micro_batch: int
    gradient_clip: float
    loss_limit: float
    """A mean loss above this many nats has exploded."""
    dropout: DropoutSeeds | None = None
    """Where the random numbers of the model's dropout come from; None for a model without."""

    def step(self, batch: Batch, rate: float) -> StepResult:
        """Train on `batch` with learning rate `rate`, unless loss or gradients are not finite or the loss exploded.

        StepMemoryError where memory did not suffice for the gradients, which are dropped.
        """
        loss, norm = self._gradients(batch)
        problem = self._problem(loss, norm)
        optimizer = self.prepared.optimizer
        if problem is None:
            for group in optimizer.param_groups:
                group["lr"] = rate
            optimizer.step()
        self.prepared.forget_gradients()
        return StepResult(loss, norm, problem)

    def _gradients(self, batch: Batch) -> tuple[float, float]:
        """Loss and norm of the gradients, which are clipped."""
        short: str | None = None
        try:
            with self.dropout.step(self.accelerator.device) if self.dropout else nullcontext():
                loss = self._accumulate(batch)
            return loss, self._clip()
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            short = str(error)
        # Not within the handler: its error keeps alive the frames, and with them the tensors, of what did not fit.
        self.prepared.forget_gradients()
        raise StepMemoryError(short)

    def _accumulate(self, batch: Batch) -> float:
        """Gradients of the mean loss over the global batch, and that loss, the same in every process."""
        processes, parts = self.accelerator.num_processes, []
        for number, (rows, last) in enumerate(_slices(len(batch.inputs), self.micro_batch)):
            if self.dropout:
                self.dropout.begin(batch.step, number)
            with nullcontext() if last else self.prepared.unsynchronized():
                inputs, targets = (part.to(self.accelerator.device, non_blocking=True) for part in batch.part(rows))
                loss = self.prepared.wrapped(inputs, targets) / batch.predicted
                # Gradients are averaged over processes, each of which has its share of the sum.
                self.accelerator.backward(loss * processes)
            parts.append(loss.detach())
        return float(self.accelerator.reduce(torch.stack(parts).double().sum(), "sum"))

    def _clip(self) -> float:
        norm = self.accelerator.clip_grad_norm_(self.parameters, self.gradient_clip)
        return float(norm.full_tensor() if hasattr(norm, "full_tensor") else norm)

    def _problem(self, loss: float, norm: float) -> str | None:
        if not math.isfinite(loss):
            return f"the loss is {loss}"
        if not math.isfinite(norm):
            return f"the gradient norm is {norm}"
        if loss > self.loss_limit:
            return f"the loss is {loss:.4g} nats, above training.loss_limit ({self.loss_limit:.4g})"
        return None


def _slices(rows: int, size: int) -> Iterator[tuple[slice, bool]]:
    """Slices of at most `size` rows, and whether each is the last."""
    for start in range(0, rows, size):
        yield slice(start, start + size), start + size >= rows
