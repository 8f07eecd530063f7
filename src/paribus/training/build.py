"""The stage `training`: (tokens, order, contexts) -> the last models of a training run.

Output: `step_00000123/` (Hugging Face directory of model and tokenizer, and `tokenizer/`), `state/` (optimizer after
the last step), `metrics.jsonl` (a line a step), `contexts.json` (which contexts were read) and `readings.npy` (how
often each of a sample of the corpus' bytes was read).
"""

from dataclasses import replace
from typing import Any

import torch
from accelerate.utils import broadcast_object_list, gather_object

from paribus.config.groups.ordering import PairPacking, within_documents
from paribus.config.schema import RunConfig
from paribus.modeling.device import expect_many_shapes
from paribus.modeling.memory import TrainingSetting, training_memory, training_setting
from paribus.modeling.parameters import parameter_count
from paribus.ordering.shuffle import straddling
from paribus.stage import JSON, Reporter, StageContext
from paribus.tokenization import Tokenizer
from paribus.training.data.prepare import open_data, prepare
from paribus.training.export import export, pair_numbers, save_readings
from paribus.training.fit.available import available_bytes, gpu_bytes, peak_bytes
from paribus.training.fit.determinism import conditions
from paribus.training.fit.device import device_name, make_accelerator
from paribus.training.fit.fit import Fit, fit
from paribus.training.fit.micro_batch import MicroBatch
from paribus.training.loop import Run, train
from paribus.training.processes.host import Host, join_host
from paribus.training.processes.parallel import arithmetic, compiles, is_shared, why_not_compiled
from paribus.training.processes.processes import resolve_processes
from paribus.training.processes.requests import Requests
from paribus.training.start.first import begun
from paribus.training.start.handover import first_checkpoint, hand_over
from paribus.training.start.resumed import resumed_state, resuming, told_of
from paribus.training.start.weights import starting_model
from paribus.training.state.checkpoint import Checkpoint


def build(context: StageContext) -> dict[str, JSON]:
    """Train the model of `context.config` on the ordered tokens, going on from what `context.work` holds."""
    processes = resolve_processes(context.config.training)
    if processes.total == 1:
        return train_in_process(context, 1, Requests())
    from paribus.training.processes.launch import train_in_processes

    return train_in_processes(context, processes)


def train_in_process(context: StageContext, processes: int, requests: Requests) -> dict[str, JSON]:
    """Train as one of `processes` processes, heeding `requests`; the main one fills the output.

    Its result is the stage's.
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
    if told := why_not_compiled(context.config.training, accelerator.device):
        context.report.message(told)
    data = open_data(context)
    config = data.config
    if isinstance(config.packing, PairPacking):
        expect_many_shapes()
    kept = MicroBatch.of(context.work, config.training, accelerator.num_processes)
    fitted = fitted_to_memory(config, tokenizer.vocab_size, accelerator, precision, kept, context.report)
    training = replace(config.training, micro_batch=fitted.micro_batch)
    run = prepare(context, tokenizer, replace(data, config=replace(config, training=training)), accelerator, host)
    device = device_name(accelerator.device)
    compiled = compiles(training, accelerator.device)
    fixed = conditions(training, accelerator, device, precision)
    checkpoints = replace(run.checkpoints, fingerprint={**run.checkpoints.fingerprint, **fixed})
    run = replace(run, checkpoints=checkpoints, requests=requests, micro_batch=kept)
    start = resuming(config)
    state = resumed_state(start) if start else None
    if state:
        hand_over(config, tokenizer, state, run)
        own = frozenset(step for step in run.checkpoints.kept if step > state.step)
        run = replace(run, checkpoints=replace(run.checkpoints, kept=own))
    resumed = _newest(run, host)
    # Not before: what may not go on is not to change what does.
    if run.main:
        kept.keep(fitted.micro_batch, fitted.tried_on)
    if resumed:
        context.report.message(f"training goes on from the checkpoint of step {resumed.step:,}")
    elif state:
        context.report.message(told_of(state))
        resumed = first_checkpoint(state)
    shared = is_shared(training, accelerator.num_processes)
    run.checkpoints.go_on(resumed, arithmetic(device, precision, compiled=compiled, shared=shared))
    model, weights = starting_model(config, tokenizer, resumed, shared=shared)
    spent = train(run, model, resumed, weights)
    peak = max(gather_object([peak_bytes(accelerator.device)]))
    if not run.main:
        return {}
    used = _setting(config, kept.used or fitted.micro_batch, accelerator, precision)
    predicted = training_memory(config.model, tokenizer.vocab_size, used)
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
        "skipped_steps": run.metrics.last("train/skipped_steps"),
        "micro_batch": kept.used,
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


def fitted_to_memory(  # noqa: PLR0917 (each decides what fits, or where it is kept and said)
    config: RunConfig, vocab_size: int, accelerator: Any, precision: str, kept: MicroBatch, report: Reporter
) -> Fit:
    """The micro-batch of all processes, found for the one with the least memory; a lowered one is said.

    It decides how sums are rounded, so what was lowered stays so when the run goes on, and what was tried on GPUs of
    no more memory is taken as it is; whoever trains keeps it. Raises OutOfMemoryError where not even one context fits.
    """
    device = accelerator.device
    # One for all: what another node has lowered a moment ago, a network file system may not show here yet.
    found = [used for used in gather_object([kept.used]) if used is not None]
    how = _setting(config, min(found, default=kept.given), accelerator, precision)
    tried_on = None if how.sharded else _tried_on(kept, device)
    if tried_on:
        fitted = Fit(how.micro_batch, tried_on=tried_on)
    else:
        free = gather_object([available_bytes(device)])
        known = [size for size in free if size is not None]
        fitted = fit(config.model, vocab_size, how, min(known, default=None))
    if fitted.lowered and accelerator.is_main_process:
        report.message(fitted.lowered)
    return fitted


def _tried_on(kept: MicroBatch, device: torch.device) -> int | None:
    """Bytes of the GPU on which what is kept was tried, the same in all; None where a process has no GPU as large."""
    sizes = [size for size in gather_object([kept.tried_on]) if size]
    largest = max(sizes, default=None)
    fits = largest is not None and (gpu_bytes(device) or 0) >= largest
    return largest if all(gather_object([fits])) else None


def _setting(config: RunConfig, micro_batch: int, accelerator: Any, precision: str) -> TrainingSetting:
    """What decides the memory of each process."""
    return training_setting(
        replace(config.training, micro_batch=micro_batch),
        precision,
        accelerator.num_processes,
        gpu=accelerator.device.type == "cuda",
        documents=within_documents(config.packing),
    )


def _newest(run: Run, host: Host) -> Checkpoint | None:
    """The checkpoint to go on from, found and verified by the main process for all."""
    found: list[int | None] = [None]
    if run.main:
        newest = run.checkpoints.newest(limit=min(run.metrics.complete_steps(), run.budget.steps))
        found = [newest.step if newest else None]
    host.wait()
    step = broadcast_object_list(found)[0]
    return None if step is None else run.checkpoints.read(step)
