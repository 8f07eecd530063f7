"""The stage `training`: (tokens, order, contexts) -> the checkpoints of a training run that are kept.

Output: `step_00000123/` (Hugging Face directory of model and tokenizer, and `tokenizer/`), `state/` (optimizer after
the last step), `metrics.jsonl` (a line a step), `contexts.json` (which contexts were read) and `readings.npy` (how
often each byte of a sample of the corpus was read).
"""

import math
import os
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed
from accelerate.utils import broadcast_object_list, gather_object

from paribus.config.groups.ordering import BestFitPacking, PairPacking, within_documents
from paribus.config.groups.training import amount_path, saved_steps, too_few_checkpoints
from paribus.config.schema import RunConfig, in_contexts
from paribus.errors import ConfigurationError
from paribus.modeling.architecture import WEIGHTS
from paribus.modeling.decoder import places
from paribus.modeling.device import expect_many_shapes
from paribus.modeling.memory import TrainingSetting, training_memory, training_setting
from paribus.modeling.parameters import parameter_count, training_flops
from paribus.ordering.arrays import save_array
from paribus.ordering.contexts import open_contexts
from paribus.ordering.ordered_text import READINGS, MeasuredContexts, readings
from paribus.ordering.packing import Contexts
from paribus.ordering.pairs import PairContexts
from paribus.ordering.shuffle import ContextShuffle, straddling
from paribus.stage import JSON, StageContext, StageListener
from paribus.store.files import METRICS, write_json
from paribus.tokenization import Tokenizer
from paribus.training.checkpoint import Checkpoint, Checkpoints, step_name
from paribus.training.data import (
    Amounts,
    Batches,
    Integers,
    SourceTokens,
    amount_of,
    contexts_digest,
    data_fingerprint,
    recipe_fingerprint,
    resolve_budget,
)
from paribus.training.distributed import ALONE, Host, Requests, join_host, resolve_processes, run_worker
from paribus.training.fit import Fit, fit
from paribus.training.initial import first_checkpoint, hand_over, starting_model
from paribus.training.loop import TrainingRun, train
from paribus.training.losses import DocumentEnd
from paribus.training.metrics import MetricsFile
from paribus.training.micro_batch import MicroBatch, available_bytes, gpu_bytes, peak_bytes
from paribus.training.parallel import (
    arithmetic,
    compiles,
    determinism_conditions,
    device_name,
    is_shared,
    make_accelerator,
    why_not_compiled,
)
from paribus.training.sharded import Part, write_whole
from paribus.training.start import OPTIMIZER, STATE, STATE_DIRECTORY, begun, resume_message, resumed_state, resuming


def build(context: StageContext) -> dict[str, JSON]:
    """Train the model of `context.config` on the ordered tokens, resuming from what `context.work` holds."""
    processes = resolve_processes(context.config.training)
    if processes.total == 1:
        return train_in_process(context, 1, Requests())
    from paribus.training.launch import train_in_processes

    return train_in_processes(context, processes)


def train_in_process(context: StageContext, processes: int, requests: Requests) -> dict[str, JSON]:
    """Train as one of `processes` processes and answer `requests`; the main process fills the output.

    Returns the stage's result in the main process, an empty one in all others.
    """
    accelerator, precision = make_accelerator(context.config.training, processes)
    host = join_host(accelerator)
    result = _train(context, accelerator, precision, host, requests)
    # The main process still writes the artefact when the others are done.
    host.wait()
    return result


def _train(context: StageContext, accelerator: Any, precision: str, host: Host, requests: Requests) -> dict[str, JSON]:
    context = begun(context)
    tokenizer = Tokenizer.load(context.inputs["tokens"] / "tokenizer")
    if warning := why_not_compiled(context.config.training, accelerator.device):
        context.listener.message(warning)
    data = open_data(context)
    config = data.config
    if isinstance(config.packing, PairPacking):
        expect_many_shapes()
    record = MicroBatch.of(context.work, config.training, accelerator.num_processes)
    fitted = fitted_to_memory(config, tokenizer.vocab_size, accelerator, precision, record, context.listener)
    training = replace(config.training, micro_batch=fitted.micro_batch)
    run = prepare(context, tokenizer, replace(data, config=replace(config, training=training)), accelerator, host)
    device = device_name(accelerator.device)
    compiled = compiles(training, accelerator.device)
    fixed = determinism_conditions(training, accelerator, device, precision)
    checkpoints = replace(run.checkpoints, fingerprint={**run.checkpoints.fingerprint, **fixed})
    run = replace(run, checkpoints=checkpoints, requests=requests, micro_batch=record)
    start = resuming(config)
    state = resumed_state(start) if start else None
    if state:
        hand_over(config, tokenizer, state, run)
        later_steps = frozenset(step for step in run.checkpoints.kept if step > state.step)
        run = replace(run, checkpoints=replace(run.checkpoints, kept=later_steps))
    resumed = _newest(run, host)
    # Only now: a training that was refused must not change the record of one that goes on.
    if run.main:
        record.keep(fitted.micro_batch, fitted.tried_on)
    if resumed:
        context.listener.message(f"training goes on from the checkpoint of step {resumed.step:,}")
    elif state:
        context.listener.message(resume_message(state))
        resumed = first_checkpoint(state)
    shared = is_shared(training, accelerator.num_processes)
    run.checkpoints.go_on(resumed, arithmetic(device, precision, compiled=compiled, shared=shared))
    model, weights = starting_model(config, tokenizer, resumed, shared=shared)
    spent = train(run, model, resumed, weights)
    peak = max(gather_object([peak_bytes(accelerator.device)]))
    if not run.main:
        return {}
    setting = _setting(config, record.used or fitted.micro_batch, accelerator, precision)
    predicted = training_memory(config.model, tokenizer.vocab_size, setting)
    export(run, context.inputs["tokens"] / "tokenizer", context.output)
    save_readings(run, data.measured, context.output)
    return pair_numbers(run) | {
        "steps": run.budget.steps,
        "first_step": state.step if state else 0,
        "global_batch": run.batches.global_batch,
        "context_length": run.batches.contexts.context_length,
        "tokens": run.budget.tokens,
        "positions": run.budget.positions,
        "text_bytes": run.budget.text_bytes,
        "batch_bytes": run.budget.text_bytes / run.budget.steps,
        "context_bytes": run.budget.text_bytes / (run.budget.steps * run.batches.global_batch),
        "epochs": run.budget.epochs,
        "straddling": straddling(run.batches.traversal, data.measured),
        "parameters": parameter_count(config.model, tokenizer.vocab_size),
        "flops": run.budget.flops,
        "final_loss": run.metrics.recent("train/loss"),
        "lossy": tokenizer.settings.lossy,
        "skipped_steps": run.metrics.at(run.budget.steps, "train/skipped_steps"),
        "micro_batch": record.used,
        "memory": predicted.device if predicted else None,
        "memory_peak": peak or None,
        "precision": precision,
        "device": device,
        "computed_on": list(run.checkpoints.computed_on),
        "devices": accelerator.num_processes,
        "seconds": spent.seconds,
        "device_hours": spent.device_hours,
        "damaged_checkpoints": list(run.checkpoints.damaged),
    }


def fitted_to_memory(  # noqa: PLR0917 (each decides what fits, or where that is recorded and reported)
    config: RunConfig, vocab_size: int, accelerator: Any, precision: str, kept: MicroBatch, listener: StageListener
) -> Fit:
    """Micro-batch of all processes, chosen for the one with the least memory; a message reports a lowered one.

    The micro-batch decides how sums are rounded, so a lowered one stays when the run goes on, and one that was tried on
    GPUs with no more memory is taken unchanged. The caller records it. Raises OutOfMemoryError where not even one
    context fits.
    """
    device = accelerator.device
    # Gathered: a network file system may not show here yet what another node has just lowered.
    sizes = [used for used in gather_object([kept.used]) if used is not None]
    setting = _setting(config, min(sizes, default=kept.given), accelerator, precision)
    # Memory in bytes of the GPU on which the recorded micro-batch was tried, the same in all processes.
    tried_on = max((size for size in gather_object([kept.tried_on]) if size), default=0)
    if not setting.sharded and tried_on and all(gather_object([(gpu_bytes(device) or 0) >= tried_on])):
        fitted = Fit(setting.micro_batch, tried_on=tried_on)
    else:
        free = [size for size in gather_object([available_bytes(device)]) if size is not None]
        fitted = fit(config.model, vocab_size, setting, min(free, default=None))
    if fitted.lowered and accelerator.is_main_process:
        listener.message(fitted.lowered)
    return fitted


def _setting(config: RunConfig, micro_batch: int, accelerator: Any, precision: str) -> TrainingSetting:
    """Setting that decides the memory of each process."""
    return training_setting(
        replace(config.training, micro_batch=micro_batch),
        precision,
        accelerator.num_processes,
        gpu=accelerator.device.type == "cuda",
        documents=within_documents(config.packing),
    )


def _newest(run: TrainingRun, host: Host) -> Checkpoint | None:
    """The checkpoint to resume from, which the main process finds and verifies for all."""
    steps: list[int | None] = [None]
    if run.main:
        newest = run.checkpoints.newest(limit=min(run.metrics.complete_steps(), run.budget.steps))
        steps = [newest.step if newest else None]
    host.wait()
    step = broadcast_object_list(steps)[0]
    return None if step is None else run.checkpoints.read(step)


def train_worker(context: StageContext, processes: int, requests: Requests) -> dict[str, JSON]:
    """Train as `train_in_process` does, then leave the group of processes."""
    result = train_in_process(context, processes, requests)
    torch.distributed.destroy_process_group()
    return result


def main() -> int:
    """Train; 0 unless this process failed."""
    return run_worker(train_worker)


@dataclass(frozen=True)
class Data:
    """Data that a training reads, and the configuration with its context and batch in tokens and contexts."""

    config: RunConfig
    contexts: Contexts
    traversal: ContextShuffle
    measured: MeasuredContexts
    fingerprint: dict[str, JSON]


def open_data(context: StageContext) -> Data:
    """Open the encoded text in its order, packed into contexts, and what was measured of them; no token is read.

    Raises DataError for a corpus smaller than one context.
    """
    opened, measured = open_contexts(context.config, context.inputs)
    config, contexts, traversal = opened.config, opened.contexts, opened.traversal(measured)
    config = replace(config, training=in_contexts(config.training, float(measured.text_bytes.mean())))
    return Data(config, contexts, traversal, measured, data_fingerprint(opened.corpus, opened.order, contexts))


def prepare(
    context: StageContext, tokenizer: Tokenizer, data: Data, accelerator: Any, host: Host = ALONE
) -> TrainingRun:
    """Resolve the budget and open the working directory; nothing is trained yet.

    Raises ConfigurationError for a budget that takes more epochs than it may. A message reports one that leaves fewer
    checkpoints than are to be scored.
    """
    config, targets, text_bytes = data.config, data.measured.targets, data.measured.text_bytes
    batches = Batches(data.contexts, config.training.global_batch, data.traversal)
    sources = SourceTokens(data.contexts) if isinstance(data.contexts, PairContexts) else None
    step_flops = _step_flops(config, tokenizer, batches, targets, sources)
    budget = resolve_budget(config.budget, batches, targets, text_bytes, step_flops)
    if unreached := config.training.unreached_warmup(budget.steps, amount_path(config.budget)):
        raise ConfigurationError(f"training.warmup_steps: {unreached}")
    if sources is not None:
        read = amount_of(budget.steps * batches.global_batch, batches, sources)
        budget = replace(budget, source_tokens=read, positions=budget.tokens + read)
    # Runs that score fewer checkpoints share this training: it only warns, and the evaluation refuses.
    if few := too_few_checkpoints(config.training, budget.steps, config.evaluation.checkpoints_read):
        context.listener.message(f"this run cannot be scored: {config.evaluation.checkpoints_path}: {few}")
    draws = batches.traversal.draws
    if tokenizer.settings.encoder == "dropout" and isinstance(data.contexts, PairContexts) and budget.epochs > draws:
        often = "once" if draws == 1 else f"{draws} times"
        context.listener.message(
            f"BPE-dropout drew the tokens {often} for {budget.epochs:.3g} epochs, which read them again: "
            f"encoder.draws={math.ceil(budget.epochs)} gives every epoch its own"
        )
    document_end = DocumentEnd(tokenizer.eos_id, begins=isinstance(config.packing, BestFitPacking))
    fingerprint = data.fingerprint | recipe_fingerprint(config, context.inputs["tokens"] / "tokenizer")
    return TrainingRun(
        training=config.training,
        budget=budget,
        batches=batches,
        dropout_seed=config.seed_of("dropout"),
        targets=targets,
        text_bytes=text_bytes,
        document_end=document_end if within_documents(config.packing) else None,
        checkpoints=Checkpoints(context.work, frozenset(saved_steps(config.training, budget.steps)), fingerprint),
        metrics=MetricsFile(context.work / METRICS),
        listener=context.listener,
        accelerator=accelerator,
        host=host,
    )


def _step_flops(
    config: RunConfig, tokenizer: Tokenizer, batches: Batches, targets: Integers, sources: Amounts | None
) -> int:
    """FLOPs of one global batch: of contexts with their padding, of pairs the mean of an epoch without.

    The padding of pairs depends on the micro-batch, which must not decide how long a run trains.
    """
    contexts = batches.contexts
    if sources is None:
        return training_flops(config.model, tokenizer.vocab_size, batches.global_batch * contexts.context_length)
    epoch_flops = training_flops(config.model, tokenizer.vocab_size, int(targets.sum()), int(sources.sum()))
    return epoch_flops * batches.global_batch // contexts.count


def export(run: TrainingRun, tokenizer: Path, output: Path) -> None:
    """Fill the artefact from the working directory: kept checkpoints, the last optimizer state, the records."""
    # A checkpoint in the store must be scored with the ids of paribus, where text is never a special token.
    exported = Tokenizer.load(tokenizer).to_huggingface(split_special_tokens=True)
    for step in sorted(run.checkpoints.kept):
        target = output / step_name(step)
        target.mkdir()
        checkpoint = run.checkpoints.read(step)
        for file in checkpoint.model_files():
            _link_or_copy(file, target / file.name)
        if checkpoint.sharded:
            write_weights(checkpoint, target)
        exported.save_pretrained(target)
        shutil.copytree(tokenizer, target / "tokenizer", dirs_exist_ok=True)
    last = run.checkpoints.read(run.budget.steps)
    state = output / STATE_DIRECTORY
    state.mkdir()
    _link_or_copy(last.path / STATE, state / STATE)
    if last.sharded:
        write_optimizer(last, state)
    else:
        _link_or_copy(last.path / OPTIMIZER, state / OPTIMIZER)
    shutil.copy2(run.metrics.path, output / METRICS)
    write_json(output / "contexts.json", contexts_record(run))


def write_weights(checkpoint: Checkpoint, directory: Path) -> None:
    """Write the rows of a sharded checkpoint as the one file of a Hugging Face directory."""
    stored = checkpoint.weights()
    parts = {}
    for place in places(checkpoint.architecture):
        rows = range(stored.shapes[place.parameter][0])[place.rows]
        parts[place.stored] = Part(place.parameter, (rows.start, rows.stop))
    write_whole(directory / WEIGHTS, stored, parts, {"format": "pt"})


def write_optimizer(checkpoint: Checkpoint, directory: Path) -> None:
    """Write the optimizer's state of a sharded checkpoint as one file."""
    state = checkpoint.optimizer()
    write_whole(directory / OPTIMIZER, state, {name: Part(name, None) for name in state.shapes}, {})


def save_readings(run: TrainingRun, measured: MeasuredContexts, output: Path) -> None:
    """Write how often each of a sample of the corpus' bytes was read, in the smallest integers that hold it."""
    batches, steps = run.batches, run.budget.steps
    counts = readings(measured.sampled, lambda contexts: batches.times_read(contexts, steps), measured.corpus_bytes)
    save_array(output / READINGS, counts.astype(np.min_scalar_type(int(counts.max()))))


def pair_numbers(run: TrainingRun) -> dict[str, JSON]:
    """Numbers that only trainings on pairs have."""
    pairs = isinstance(run.batches.contexts, PairContexts)
    return {"source_tokens": run.budget.source_tokens} if pairs else {}


def contexts_record(run: TrainingRun) -> dict[str, JSON]:
    """Sizes of what was read and of an epoch, and the digest of the indices of the contexts that were read."""
    batches = run.batches
    return pair_numbers(run) | {
        "contexts": batches.contexts_an_epoch,
        "context_length": batches.contexts.context_length,
        "global_batch": batches.global_batch,
        "steps": run.budget.steps,
        "epochs": run.budget.epochs,
        "tokens": run.budget.tokens,
        "tokens_per_epoch": int(run.targets.sum()) // batches.traversal.draws,
        "text_bytes": run.budget.text_bytes,
        "text_bytes_per_epoch": int(run.text_bytes.sum()) // batches.traversal.draws,
        "indices_sha256": contexts_digest(batches, run.budget.steps),
    }


def _link_or_copy(source: Path, target: Path) -> None:
    """A hard link spares a copy of the weights; file systems without links get the copy."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
