"""One optimizer step over one global batch, its learning rate and the random numbers of its dropout.

The loss is the sum over target tokens divided by the target tokens of the global batch, so neither the micro-batch, nor
the number of processes, nor where padding stands changes more than rounding, unless the model has dropout: what that
drops depends on both.

The learning rate, a linear warm-up and then a decay, is a pure function of the step, and the random numbers of dropout
of (seed, step, process, micro-batch), so resuming needs no state. A warm-up by share and the cosine follow the budget,
so runs of different steps have the same rate at the same share of their text. A warm-up by steps and the inverse
square root do not know where the budget ends.
"""

import hashlib
import math
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch

from paribus.config.groups.training import TrainingConfig
from paribus.errors import is_out_of_memory
from paribus.modeling.models import is_encoder_decoder
from paribus.training.data import Batch
from paribus.training.parallel import Prepared


class StepMemoryError(Exception):
    """Memory ran out before the weights were touched: the step may be computed again in smaller pieces."""


@dataclass(frozen=True)
class StepResult:
    """Result of one step."""

    loss: float
    """Mean over the global batch's target tokens, nats."""
    gradient_norm: float
    """Global norm before clipping."""
    problem: str | None = None
    """Why the weights were left as they were: the quantity that was not finite or exploded, and its value."""


@dataclass(frozen=True)
class DropoutSeeds:
    """The seeds of one process."""

    seed: int
    process: int

    @contextmanager
    def step(self, device: torch.device) -> Iterator[None]:
        """Restore the random state of the CPU and of `device` when the block is left."""
        with torch.random.fork_rng([device] if device.type == "cuda" else []):
            yield

    def begin(self, step: int, micro_batch: int) -> None:
        """Seed all devices for micro-batch `micro_batch` of 0-based `step`."""
        key = f"dropout:{self.seed}:{step}:{self.process}:{micro_batch}"
        digest = hashlib.sha256(key.encode()).digest()
        torch.manual_seed(int.from_bytes(digest[:8], "little") >> 1)


@dataclass(frozen=True)
class Stepper:
    """Model, settings and devices that every step works with."""

    accelerator: Any
    prepared: Prepared
    parameters: list[torch.nn.Parameter]
    micro_batch: int
    gradient_clip: float
    loss_limit: float
    """A mean loss above this many nats has exploded."""
    dropout: DropoutSeeds | None = None
    """Source of the random numbers of the model's dropout; None for a model without."""

    def step(self, batch: Batch, rate: float) -> StepResult:
        """Train on `batch` with learning rate `rate`, unless loss or gradients are not finite or the loss exploded.

        Raises StepMemoryError where memory did not suffice for the gradients, which are dropped.
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
        """Compute and clip the gradients; the loss, and their norm before clipping."""
        try:
            with self.dropout.step(self.accelerator.device) if self.dropout else nullcontext():
                loss = self._accumulate(batch)
            return loss, self._clip()
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            reason = str(error)
        # Outside of the handler, whose error keeps alive the frames, and with them the tensors, of what did not fit.
        self.prepared.forget_gradients()
        raise StepMemoryError(reason)

    def _accumulate(self, batch: Batch) -> float:
        """Accumulate gradients of the mean loss over the global batch; that loss, the same in every process."""
        processes, losses = self.accelerator.num_processes, []
        for number, (rows, last) in enumerate(_slices(len(batch.inputs), self.micro_batch)):
            if self.dropout:
                self.dropout.begin(batch.step, number)
            with nullcontext() if last else self.prepared.unsynchronized():
                inputs, targets = (part.to(self.accelerator.device, non_blocking=True) for part in batch.part(rows))
                loss = self.prepared.wrapped(inputs, targets) / batch.predicted
                # Gradients are averaged over processes, each of which has its share of the sum.
                self.accelerator.backward(loss * processes)
            losses.append(loss.detach())
        return float(self.accelerator.reduce(torch.stack(losses).double().sum(), "sum"))

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


def warmup_steps(training: TrainingConfig, steps: int) -> int:
    """Steps of warm-up: `warmup_steps`, or `warmup_share` of `steps`, rounded half to even and at most `steps` - 1."""
    if training.warmup_steps is not None:
        return training.warmup_steps
    return min(round(training.warmup_share * steps), steps - 1)


def learning_rate(step: int, steps: int, training: TrainingConfig) -> float:
    """Learning rate of 0-based `step` out of `steps`; it peaks at the first step after the warm-up."""
    warmup = warmup_steps(training, steps)
    if training.schedule == "inverse_sqrt":
        return _inverse_square_root_rate(step, warmup, training)
    return _cosine_rate(step, steps, warmup, training)


def _cosine_rate(step: int, steps: int, warmup: int, training: TrainingConfig) -> float:
    """Half a cosine (Loshchilov and Hutter 2017, equation 5, without restarts) from the peak to a share of it.

    Step s of w warm-up steps has (s + 1) / (w + 1) of the peak; the last step has `min_learning_rate_ratio` of it.
    """
    peak, floor = training.learning_rate, training.min_learning_rate_ratio
    if step < warmup:
        return peak * (step + 1) / (warmup + 1)
    done = (step - warmup) / max(1, steps - 1 - warmup)
    return peak * (floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * min(1.0, done))))


def _inverse_square_root_rate(step: int, warmup: int, training: TrainingConfig) -> float:
    """Vaswani et al. 2017, equation 3, with a peak that is given, as in Ott et al. 2018 and their fairseq.

    Step s of w warm-up steps has i + (p - i) s / w, from i = `warmup_learning_rate` to the peak p; later ones have
    p sqrt(w / s). Without warm-up that is p / sqrt(s), and p at step 0.
    """
    peak, initial = training.learning_rate, training.warmup_learning_rate
    if step < warmup:
        return initial + (peak - initial) * step / warmup
    return peak * math.sqrt(max(1, warmup) / max(1, step))


def has_dropout(model: Any) -> bool:
    """True if a model draws random numbers when it is trained; no decoder does."""
    shares = ("dropout", "attention_dropout", "activation_dropout", "hidden_dropout")  # as transformers calls them
    return is_encoder_decoder(model) and any(getattr(model.config, name, 0.0) for name in shares)
