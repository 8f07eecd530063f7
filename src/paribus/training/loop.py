"""The training loop.

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
from paribus.errors import InterruptedRunError, NumericalError, OutOfMemoryError
from paribus.modeling.models import vocabulary_size
from paribus.stage import Reporter
from paribus.training.data.batches import Batches, Integers
from paribus.training.data.budget import Budget
from paribus.training.data.prefetch import Batch, BatchReader
from paribus.training.fit.available import forget_peak, gpu_bytes
from paribus.training.fit.determinism import deterministic
from paribus.training.fit.device import device_name, explained_memory_errors
from paribus.training.fit.micro_batch import MicroBatch
from paribus.training.fit.peaks import peak_flops
from paribus.training.fit.search import largest_fitting, trial
from paribus.training.processes.host import ALONE, Host
from paribus.training.processes.parallel import Prepared, prepare
from paribus.training.processes.requests import Asked, Requests
from paribus.training.state.checkpoint import Checkpoint, Checkpoints, step_name
from paribus.training.state.meter import Meter
from paribus.training.state.metrics import MetricsFile
from paribus.training.state.shards import WeightSource, load_weights
from paribus.training.state.snapshot import load_optimizer_tensors, take_snapshot
from paribus.training.state.spent import Spent
from paribus.training.state.writer import CheckpointWriter
from paribus.training.step.dropout import DropoutSeeds, has_dropout
from paribus.training.step.loss import DocumentEnd, compile_anew
from paribus.training.step.schedule import learning_rate
from paribus.training.step.step import StepMemoryError, Stepper, StepResult

DOCUMENTS_NAMED = 20


@dataclass(frozen=True)
class Run:
    """What a training run works with."""

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
    report: Reporter
    accelerator: Any
    host: Host = ALONE
    requests: Requests = field(default_factory=Requests)
    micro_batch: MicroBatch | None = None
    """Where the micro-batch is kept, if a training that goes on is to find it."""

    @property
    def main(self) -> bool:
        """Whether this process writes checkpoints and metrics."""
        return bool(self.accelerator.is_main_process)


def train(run: Run, model: Any, resumed: Checkpoint | None, weights: WeightSource | None = None) -> Spent:
    """Train `model` up to the budget; the last step is saved.

    It holds the weights of `resumed`, if that is given, or is on `meta` and gets its `weights` once it is sharded.

    Returns the time that it took, that before the resumed checkpoint included. Raises NumericalError at a bad step
    that may not be skipped, OutOfMemoryError where memory does not suffice, and InterruptedRunError where SIGTERM asked
    for the end, once a checkpoint of the step is written.
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
        # Requests are heeded until the last checkpoint is written.
        with (
            run.requests.heeded(),
            CheckpointWriter(run.checkpoints, run.metrics, run.host) as writer,
            closing(run.metrics),
        ):
            spent = _Loop(run, stepper, writer, start, before).run_steps()
    # What follows may be a collective of the GPUs, which would not last as long as the last checkpoint.
    run.host.wait()
    return spent


class _Loop:
    """Trains the steps from `start` to the budget."""

    def __init__(self, run: Run, stepper: Stepper, writer: CheckpointWriter, start: int, before: Spent) -> None:
        self.run, self.stepper, self.writer, self.start = run, stepper, writer, start
        self.prepared = stepper.prepared
        self.before, self.began = before, time.monotonic()
        self.saved_at = time.monotonic()
        self.meter = make_meter(run) if run.main else None
        self.skipped = run.metrics.at(start, "train/skipped_steps")
        self.reader = BatchReader(
            run.batches,
            run.targets,
            run.accelerator.process_index,
            run.accelerator.num_processes,
            pinned=run.accelerator.device.type == "cuda",
        )

    def run_steps(self) -> Spent:
        """The time of training, that before `start` included."""
        if self.meter:
            self.meter.begin(self.start, self.before)
        if self._asked().stop:
            raise InterruptedRunError("stopped by a signal before the first step")
        with self.reader.ahead(self.start, self.run.budget.steps) as batches:
            for batch in batches:
                rate = learning_rate(batch.step, self.run.budget.steps, self.run.training)
                self._record(batch, rate, self._step(batch, rate))
        return self._spent()

    def _spent(self) -> Spent:
        return self.before.later(time.monotonic() - self.began, self.run.accelerator.num_processes)

    def _step(self, batch: Batch, rate: float) -> StepResult:
        """One step, computed again with half of the micro-batch, and that of the following ones too, while it does not
        fit.
        """
        while True:
            try:
                return self.stepper.step(batch, rate)
            except StepMemoryError as error:
                short = str(error)
            smaller = halved(self.run, self.stepper.micro_batch, len(batch.inputs), short)
            release_memory()
            begin_anew(self.run)
            self.stepper = replace(self.stepper, micro_batch=smaller)

    def _record(self, batch: Batch, rate: float, result: StepResult) -> None:
        step = batch.step + 1
        if result.problem:
            self._skip(batch, rate, result.problem)
        if self.meter:
            made = {"loss": result.loss, "rate": rate, "norm": result.gradient_norm}
            self.meter.record(step, batch.indices, **made, skipped=self.skipped)
        asked = self._asked()
        if any(asked) or is_checkpoint(step, self.run.checkpoints.kept, self.run.training.checkpoint_every):
            self._save(step)
        if asked.stop:
            # A process that ends has all others ended, and the main one may still be writing.
            self._finish_writing()
            told = f"stopped by a signal after step {step}, whose checkpoint is written"
            self.run.report.message(told)
            raise InterruptedRunError(told)
        self.writer.check()

    def _asked(self) -> Asked:
        """What signals ask for, the same in all processes; a checkpoint too where the last is as old as may be lost."""
        asked, minutes = self.run.requests.take(), self.run.training.checkpoint_minutes
        if asked.save:
            self.run.report.message("SIGUSR1: a checkpoint of this step is written, and training goes on")
        late = self.run.main and minutes is not None and time.monotonic() - self.saved_at >= 60 * minutes
        return Asked(*self.run.host.agreed((asked.save or late, asked.stop)))

    def _finish_writing(self) -> None:
        """Wait in every process until the last checkpoint is written; on the host, since a file system may be slow."""
        self.writer.finish()
        self.run.host.wait()

    def _save(self, step: int) -> None:
        # One copy at a time. A process that went on meanwhile would wait for the main one in a collective of its GPU.
        self._finish_writing()
        snapshot = take_snapshot(self.prepared.model, self.prepared.optimizer, main=self.run.main)
        if snapshot:
            self.writer.write(step, snapshot, self._spent())
        self.saved_at = time.monotonic()

    def _skip(self, batch: Batch, rate: float, problem: str) -> None:
        self.skipped += 1
        allowed = self.run.training.skip_bad_steps
        if self.skipped > allowed:
            self._finish_writing()
            raise NumericalError(describe_bad_step(self.run, batch, rate, problem, self.skipped - 1))


def make_meter(run: Run) -> Meter:
    """What counts and reports the steps of `run`."""
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


def make_stepper(run: Run, prepared: Prepared, micro_batch: int) -> Stepper:
    """What makes one step of `run`, with so many contexts at once."""
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


def first_micro_batch(run: Run, prepared: Prepared, start: int) -> int:
    """The micro-batch to begin with after `start` steps: that of `run`, or what trial steps on its GPUs find.

    A model that is sharded cannot be tried without the other processes, which one that runs out of memory would leave
    waiting.
    """
    kept, accelerator = run.micro_batch, run.accelerator
    if kept is None or kept.given or start or accelerator.device.type != "cuda" or run.training.parallel == "fsdp":
        return run.training.micro_batch
    # In all or in none: what another node has written a moment ago, a network file system may not show here yet.
    if any(run.host.gathered(kept.halvings)):
        return run.training.micro_batch
    share, length = run.batches.global_batch // accelerator.num_processes, run.batches.contexts.context_length
    fits = partial(trial, accelerator, run.host, prepared, share=share, length=length)
    found = largest_fitting(run.training.micro_batch, share, fits)
    begin_anew(run)
    tried_on = min(run.host.gathered(gpu_bytes(accelerator.device) or 0))
    if run.main:
        kept.keep(found, tried_on)
        run.report.message(f"training.micro_batch=0: {found} is the largest that fits into the memory of the GPU")
    return found


def begin_anew(run: Run) -> None:
    """Forget what was compiled for another micro-batch, and the memory that it took or lacked."""
    compile_anew()
    forget_peak(run.accelerator.device)


def halved(run: Run, micro_batch: int, share: int, short: str) -> int:
    """The micro-batch in place of one that memory did not suffice for, kept and said; `share` is a process' contexts.

    OutOfMemoryError where there is none, where the bits would not be those of a training that was not stopped, and in
    one of several processes, whose others wait for it in a collective: they have to begin again from a checkpoint.
    """
    told = f"memory ran out with training.micro_batch={micro_batch} ({short})"
    if run.training.deterministic:
        raise OutOfMemoryError(f"{told}; with training.deterministic it is not lowered: begin again with a smaller one")
    kept = run.micro_batch or MicroBatch.of(run.checkpoints.directory, run.training, run.accelerator.num_processes)
    # What others hold of weights that are shared decides as well: that may be more when the run goes on.
    tried_on = None if run.training.parallel == "fsdp" else gpu_bytes(run.accelerator.device)
    smaller = kept.halve(micro_batch, share, tried_on)
    if smaller is None:
        raise OutOfMemoryError(
            f"{told}; set training.activation_checkpointing=true, or take a smaller model or model.context_length"
        )
    if run.accelerator.num_processes > 1:
        raise OutOfMemoryError(f"{told}; the next attempt takes {smaller}")
    run.report.message(f"{told}: it is {smaller} from this step on; global batches stay as they are")
    return smaller


def describe_bad_step(run: Run, batch: Batch, rate: float, problem: str, skipped: int) -> str:
    """What happened at a step, on which documents, where the last sound checkpoint is, and what to change."""
    documents = _documents(run.batches, batch.indices)
    named = ", ".join(map(str, documents[:DOCUMENTS_NAMED])) + (", ..." if len(documents) > DOCUMENTS_NAMED else "")
    saved = run.checkpoints.steps()
    sound = f"the last checkpoint is {step_name(saved[-1])}" if saved else "there is no checkpoint yet"
    allowed = f"; {skipped} steps were skipped before, as training.skip_bad_steps allows" if skipped else ""
    return (
        f"step {batch.step + 1} is bad: {problem}, at a learning rate of {rate:.3g}{allowed}; {sound}. The batch held "
        f"{len(documents)} documents, numbered in corpus order {named}. Try a lower training.learning_rate, a larger "
        "training.warmup_share or training.precision=fp32, or let such steps be left out with training.skip_bad_steps"
    )


def _documents(batches: Batches, indices: Integers) -> list[int]:
    """Numbers of the documents that contexts hold, ascending."""
    return sorted({document for index in indices for document, _ in batches.contexts.documents_of(int(index))})


def is_checkpoint(step: int, kept: frozenset[int], every: int) -> bool:
    """Whether a checkpoint is written after 1-based `step`: one that is kept, or one to go on from."""
    return step in kept or step % every == 0
