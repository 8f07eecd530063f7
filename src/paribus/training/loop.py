"""Loop of a training, and the meter that counts what it has read and what that cost.

Everything a step does follows from its number: its contexts, its learning rate and the random numbers of dropout. So a
run that was killed continues from its last checkpoint exactly.
"""

import math
import time
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from accelerate.utils import release_memory

from paribus.config.groups.training import TrainingConfig
from paribus.config.units import format_hours, format_size
from paribus.errors import InterruptedRunError, NumericalError, OutOfMemoryError
from paribus.modeling.models import vocabulary_size
from paribus.stage import StageListener
from paribus.training.checkpoint import (
    Checkpoint,
    Checkpoints,
    CheckpointWriter,
    load_optimizer_tensors,
    step_name,
    take_snapshot,
)
from paribus.training.data import Batch, Batches, BatchReader, Budget, Integers, amount_of
from paribus.training.distributed import ALONE, Host, PendingRequests, Requests
from paribus.training.losses import DocumentEnd, compile_anew
from paribus.training.metrics import MetricsFile, Spent, peak_flops
from paribus.training.micro_batch import MicroBatch, forget_peak, gpu_bytes, largest_fitting, trial
from paribus.training.parallel import Prepared, deterministic, device_name, explained_memory_errors, prepare
from paribus.training.sharded import WeightSource, load_weights
from paribus.training.step import DropoutSeeds, StepMemoryError, Stepper, StepResult, has_dropout, learning_rate

DOCUMENTS_NAMED = 20


@dataclass(frozen=True)
class TrainingRun:
    """State and settings of a training run."""

    training: TrainingConfig
    budget: Budget
    batches: Batches
    dropout_seed: int
    targets: Integers
    """Tokens that each context predicts, int64 (count,)."""
    text_bytes: Integers
    """Bytes of source text of the targets of each context, int64 (count,)."""
    document_end: DocumentEnd | None
    """None where tokens attend to all before them in the context."""
    checkpoints: Checkpoints
    metrics: MetricsFile
    listener: StageListener
    accelerator: Any
    host: Host = ALONE
    requests: Requests = field(default_factory=Requests)
    micro_batch: MicroBatch | None = None
    """Record of the micro-batch, if a training that goes on is to find it."""

    @property
    def main(self) -> bool:
        """True if this process writes checkpoints and metrics."""
        return bool(self.accelerator.is_main_process)


def train(run: TrainingRun, model: Any, resumed: Checkpoint | None, weights: WeightSource | None = None) -> Spent:
    """Train `model` up to the budget; the last step is saved.

    `model` holds the weights of `resumed`, or is on `meta` and gets its `weights` once it is sharded.

    Returns the time spent, that before the resumed checkpoint included. Raises NumericalError at a bad step that may
    not be skipped, OutOfMemoryError where memory does not suffice, and InterruptedRunError after SIGTERM, once a
    checkpoint of the last step taken is written.
    """
    start, before = (resumed.step, resumed.spent) if resumed else (0, Spent())
    if run.main:
        run.metrics.truncate(start)
        run.checkpoints.discard_after(start)
    with explained_memory_errors(run.training), deterministic(run.training):
        prepared = prepare(run.accelerator, model, run.training, run.document_end)
        if weights:
            load_weights(model, weights)
        if resumed:
            load_optimizer_tensors(model, prepared.optimizer, resumed.optimizer())
        # Trials take a minute or two, in which there is nothing to save: SIGTERM ends them at once.
        stepper = make_stepper(run, prepared, first_micro_batch(run, prepared, start))
        # Requests are answered until the last checkpoint is written.
        with (
            run.requests.heeded(),
            CheckpointWriter(run.checkpoints, run.metrics, run.host) as writer,
            closing(run.metrics),
        ):
            spent = _Loop(run, stepper, writer, start, before).run_steps()
    # The next collective of the GPUs would time out while the last checkpoint is still being written.
    run.host.wait()
    return spent


class _Loop:
    def __init__(self, run: TrainingRun, stepper: Stepper, writer: CheckpointWriter, start: int, before: Spent) -> None:
        self.run, self.stepper, self.writer, self.start = run, stepper, writer, start
        self.prepared = stepper.prepared
        self.before, self.began = before, time.monotonic()
        self.saved_at = time.monotonic()
        self.meter = Meter(run, start, before) if run.main else None
        self.skipped = run.metrics.at(start, "train/skipped_steps")
        accelerator, pinned = run.accelerator, run.accelerator.device.type == "cuda"
        rank, processes = accelerator.process_index, accelerator.num_processes
        self.reader = BatchReader(run.batches, run.targets, rank, processes, pinned)

    def run_steps(self) -> Spent:
        """Take the steps of the budget after `start`; the time spent, that before `start` included."""
        if self._take_requests().stop:
            raise InterruptedRunError("stopped by a signal before the first step")
        with self.reader.ahead(self.start, self.run.budget.steps) as batches:
            for batch in batches:
                rate = learning_rate(batch.step, self.run.budget.steps, self.run.training)
                self._record(batch, rate, self._step(batch, rate))
        return self._spent()

    def _spent(self) -> Spent:
        return self.before.later(time.monotonic() - self.began, self.run.accelerator.num_processes)

    def _step(self, batch: Batch, rate: float) -> StepResult:
        """Take a step; while it does not fit, halve the micro-batch, for later steps too, and compute it again."""
        while True:
            try:
                return self.stepper.step(batch, rate)
            except StepMemoryError as error:
                reason = str(error)
            smaller = halved(self.run, self.stepper.micro_batch, len(batch.inputs), reason)
            release_memory()
            begin_anew(self.run)
            self.stepper = replace(self.stepper, micro_batch=smaller)

    def _record(self, batch: Batch, rate: float, result: StepResult) -> None:
        step = batch.step + 1
        if result.problem:
            self.skipped += 1
            if self.skipped > self.run.training.skip_bad_steps:
                self._finish_writing()
                raise NumericalError(describe_bad_step(self.run, batch, rate, result.problem, self.skipped - 1))
        if self.meter:
            measured = {"loss": result.loss, "rate": rate, "norm": result.gradient_norm}
            self.meter.record(step, batch.indices, **measured, skipped=self.skipped)
        request = self._take_requests()
        # A checkpoint that is kept, or one to resume from.
        due = step in self.run.checkpoints.kept or step % self.run.training.checkpoint_every == 0
        if due or any(request):
            self._save(step)
        if request.stop:
            # If one process exits, the launcher kills all, and the main one may still be writing.
            self._finish_writing()
            message = f"stopped by a signal after step {step}, whose checkpoint is written"
            self.run.listener.message(message)
            raise InterruptedRunError(message)
        self.writer.check()

    def _take_requests(self) -> PendingRequests:
        """Requests of signals, the same in all processes; to save, too, every `training.checkpoint_minutes`."""
        request, minutes = self.run.requests.take(), self.run.training.checkpoint_minutes
        if request.save:
            self.run.listener.message("SIGUSR1: a checkpoint of this step is written, and training goes on")
        late = self.run.main and minutes is not None and time.monotonic() - self.saved_at >= 60 * minutes
        return PendingRequests(*self.run.host.agreed((request.save or late, request.stop)))

    def _finish_writing(self) -> None:
        """Wait in every process until the last checkpoint is written; on the host, for a file system may be slow."""
        self.writer.finish()
        self.run.host.wait()

    def _save(self, step: int) -> None:
        # One copy at a time: a process that went on would block in a collective of its GPU.
        self._finish_writing()
        snapshot = take_snapshot(self.prepared.model, self.prepared.optimizer, main=self.run.main)
        if snapshot:
            self.writer.write(step, snapshot, self._spent())
        self.saved_at = time.monotonic()


class Meter:
    """Counts steps, tokens, text, FLOPs, epochs and device-hours, and reports them with the metrics of each step.

    Counts from `step`; `before` is the time spent until then. The metrics file gets, every step, what the run's
    identity determines; the listener gets, every `training.log_every` steps, that, the loss in bits per byte of the
    step's text, and what depends on the device: tokens a second, device-hours, and the utilisation of a known device.
    """

    def __init__(self, run: TrainingRun, step: int, before: Spent) -> None:
        self.run, self._before, self._began = run, before, time.monotonic()
        self._devices, self._peak = run.accelerator.num_processes, peak_flops(device_name(run.accelerator.device))
        contexts = step * run.batches.global_batch
        self._tokens = amount_of(contexts, run.batches, run.targets)
        self._text = amount_of(contexts, run.batches, run.text_bytes)
        self._since = self._began, self._tokens, step
        """Time, tokens and steps of the last report."""
        self._progress(step, self._began)

    def record(self, step: int, indices: Integers, *, loss: float, rate: float, norm: float, skipped: int) -> None:
        """Count 1-based `step`, which read the contexts `indices`; `skipped` steps so far left the weights alone."""
        tokens, text = int(self.run.targets[indices].sum()), int(self.run.text_bytes[indices].sum())
        self._tokens += tokens
        self._text += text
        values = {
            "train/loss": loss,
            "train/learning_rate": rate,
            "train/gradient_norm": norm,
            "train/tokens": self._tokens,
            "train/text_bytes": self._text,
            "train/flops": self._flops(step),
            "train/epochs": step * self.run.batches.global_batch / self.run.batches.contexts_an_epoch,
        }
        if skipped:
            values["train/skipped_steps"] = skipped
        values = {name: value for name, value in values.items() if math.isfinite(value)}
        now = time.monotonic()
        self.run.metrics.append(step, values)
        self._progress(step, now)
        if step % self.run.training.log_every == 0 or step == self.run.budget.steps:
            bits = {"train/bits_per_byte": loss * tokens / (text * math.log(2))} if text and math.isfinite(loss) else {}
            for name, value in (values | bits | self._measured(step, now)).items():
                self.run.listener.metric(name, value, step=step)
            self._since = now, self._tokens, step

    def _flops(self, steps: int) -> int:
        return self.run.budget.flops // self.run.budget.steps * steps

    def _hours(self, now: float) -> float:
        return self._before.later(now - self._began, self._devices).device_hours

    def _progress(self, step: int, now: float) -> None:
        flops = f"{self._flops(step):.1e}".replace("e+", "e")
        detail = (
            f"{format_size(self._text)} · {flops} FLOPs · step {step:,} of {self.run.budget.steps:,} · "
            f"{format_hours(self._hours(now))} device-hours"
        )
        self.run.listener.progress(
            self._tokens, self.run.budget.tokens, unit="tokens", doing="taking steps", detail=detail
        )

    def _measured(self, step: int, now: float) -> dict[str, float]:
        """Metrics that depend on the device; speeds are those since the last report."""
        since, tokens, steps = self._since
        seconds = max(now - since, 1e-9)
        measured = {
            "train/tokens_per_second": (self._tokens - tokens) / seconds,
            "train/device_hours": self._hours(now),
        }
        if self._peak is not None:
            possible = self._peak * self._devices * seconds
            measured["train/model_flops_utilization"] = self._flops(step - steps) / possible
        return measured


def make_stepper(run: TrainingRun, prepared: Prepared, micro_batch: int) -> Stepper:
    limit, vocabulary = run.training.loss_limit, vocabulary_size(prepared.model)
    return Stepper(
        accelerator=run.accelerator,
        prepared=prepared,
        parameters=list(prepared.model.parameters()),
        micro_batch=micro_batch,
        gradient_clip=run.training.gradient_clip,
        loss_limit=math.inf if limit is None else limit * math.log(vocabulary),
        dropout=DropoutSeeds(run.dropout_seed, run.accelerator.process_index) if has_dropout(prepared.model) else None,
    )


def first_micro_batch(run: TrainingRun, prepared: Prepared, start: int) -> int:
    """The micro-batch to begin with after `start` steps: that of `run`, or the largest that fits in trials on its GPUs.

    A sharded model is not tried: trials need all processes, and one that ran out of memory would leave others waiting.
    """
    record, accelerator = run.micro_batch, run.accelerator
    if record is None or record.given or start or accelerator.device.type != "cuda" or run.training.parallel == "fsdp":
        return run.training.micro_batch
    # In all processes or in none: a network file system may not show here yet what another node has just written.
    if any(run.host.gathered(record.halvings)):
        return run.training.micro_batch
    share, length = run.batches.global_batch // accelerator.num_processes, run.batches.contexts.context_length
    fits = partial(trial, accelerator, run.host, prepared, share=share, length=length)
    size = largest_fitting(run.training.micro_batch, share, fits)
    begin_anew(run)
    tried_on = min(run.host.gathered(gpu_bytes(accelerator.device) or 0))
    if run.main:
        record.keep(size, tried_on)
        run.listener.message(f"training.micro_batch=0: {size} is the largest that fits into the memory of the GPU")
    return size


def begin_anew(run: TrainingRun) -> None:
    """Forget what was compiled for another micro-batch, and the peak of memory that it reached."""
    compile_anew()
    forget_peak(run.accelerator.device)


def halved(run: TrainingRun, micro_batch: int, share: int, reason: str) -> int:
    """Halve the micro-batch, record and report it; `share` are the contexts of a process, `reason` is the error.

    Raises OutOfMemoryError if it cannot be halved, under training.deterministic, and in one of several processes, which
    all begin again from a checkpoint since the others wait in a collective.
    """
    message = f"memory ran out with training.micro_batch={micro_batch} ({reason})"
    if run.training.deterministic:
        raise OutOfMemoryError(
            f"{message}; with training.deterministic it is not lowered: begin again with a smaller one"
        )
    record = run.micro_batch or MicroBatch.of(run.checkpoints.directory, run.training, run.accelerator.num_processes)
    # How much of shared weights the other processes hold decides as well, and may differ when the run goes on.
    tried_on = None if run.training.parallel == "fsdp" else gpu_bytes(run.accelerator.device)
    smaller = record.halve(micro_batch, share, tried_on)
    if smaller is None:
        raise OutOfMemoryError(
            f"{message}; set training.activation_checkpointing=true, or take a smaller model or model.context_length"
        )
    if run.accelerator.num_processes > 1:
        raise OutOfMemoryError(f"{message}; the next attempt takes {smaller}")
    run.listener.message(f"{message}: it is {smaller} from this step on; global batches stay as they are")
    return smaller


def describe_bad_step(run: TrainingRun, batch: Batch, rate: float, problem: str, skipped: int) -> str:
    """Message on a bad step: its documents, the last checkpoint, and what to change."""
    contexts = run.batches.contexts
    documents = sorted({document for index in batch.indices for document, _ in contexts.documents_of(int(index))})
    named = ", ".join(map(str, documents[:DOCUMENTS_NAMED])) + (", ..." if len(documents) > DOCUMENTS_NAMED else "")
    saved = run.checkpoints.steps()
    sound = f"the last checkpoint is {step_name(saved[-1])}" if saved else "there is no checkpoint yet"
    allowed = f"; {skipped} steps were skipped before, as training.skip_bad_steps allows" if skipped else ""
    return (
        f"step {batch.step + 1} is bad: {problem}, at a learning rate of {rate:.3g}{allowed}; {sound}. The batch held "
        f"{len(documents)} documents, numbered in corpus order {named}. Try a lower training.learning_rate, a larger "
        "training.warmup_share or training.precision=fp32, or let such steps be left out with training.skip_bad_steps"
    )
