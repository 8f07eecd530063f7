"""The stage `checkpoints`: (tokens, order) -> the last models of a training run.

Output: `step_00000123/` (Hugging Face directory of model and tokenizer, and `tokenizer/`), `state/` (optimizer after
the last step), `metrics.jsonl` (a line a step) and `contexts.json` (which contexts were read).
"""

import os
import shutil
from pathlib import Path
from typing import Any

from paribus.config.groups.packing import OneDocumentPacking, PackingConfig
from paribus.config.schema import RunConfig
from paribus.modeling.build import load_model
from paribus.modeling.counts import parameter_count, training_flops
from paribus.ordering.order import Order
from paribus.ordering.packing.pack import pack
from paribus.pipeline.context import JSON, StageContext
from paribus.store.atomic import write_json
from paribus.tokenization import Tokenizer
from paribus.tokenization.encoded_corpus import EncodedCorpus
from paribus.training.batches import Batches, context_targets, context_text_bytes
from paribus.training.budget import resolve_budget
from paribus.training.checkpoint import OPTIMIZER, STATE, Checkpoint, Checkpoints, step_name
from paribus.training.device import device_name, make_accelerator
from paribus.training.fingerprint import contexts_digest, data_fingerprint
from paribus.training.loop import Run, train
from paribus.training.metrics import MetricsFile
from paribus.training.schedule import check_warmup
from paribus.training.start.initial import initial_model

METRICS = "metrics.jsonl"


def build(context: StageContext) -> dict[str, JSON]:
    """Train the model of `context.config` on the ordered tokens, going on from what `context.work` holds."""
    config = context.config
    tokenizer = Tokenizer.load(context.inputs["tokens"] / "tokenizer")
    accelerator, precision = make_accelerator(config.training)
    run = prepare(context, tokenizer, accelerator)
    seconds = train_or_resume(run, config, tokenizer)
    export(run, context.inputs["tokens"] / "tokenizer", context.output)
    return {
        "steps": run.budget.steps,
        "tokens": run.budget.tokens,
        "positions": run.budget.positions,
        "text_bytes": run.budget.text_bytes,
        "epochs": run.budget.epochs,
        "parameters": parameter_count(config.model, tokenizer.vocab_size),
        "flops": training_flops(config.model, tokenizer.vocab_size, run.budget.positions),
        "final_loss": run.metrics.recent("train/loss"),
        "precision": precision,
        "device": device_name(accelerator.device),
        "seconds": seconds,
        "damaged_checkpoints": list(run.checkpoints.damaged),
    }


def prepare(context: StageContext, tokenizer: Tokenizer, accelerator: Any) -> Run:
    """Open the data, resolve the budget and open the working directory; nothing is trained yet.

    Raises DataError for a corpus smaller than one context and ConfigurationError for a budget shorter than its warm-up.
    """
    config = context.config
    corpus, order = EncodedCorpus(context.inputs["tokens"]), Order(context.inputs["order"])
    length = config.model.context_length
    contexts = pack(config.packing, corpus.ids, corpus.offsets, order, tokenizer.eod_id, length)
    batches = Batches(contexts, config.training.global_batch, config.seed, config.packing.shuffle)
    targets, text_bytes = context_targets(contexts), context_text_bytes(contexts, tokenizer.token_byte_lengths())
    budget = resolve_budget(config.budget, batches, targets, text_bytes)
    check_warmup(config.training, budget.steps)
    fingerprint = data_fingerprint(corpus.ids, corpus.offsets, order, batches, config.packing)
    return Run(
        training=config.training,
        budget=budget,
        batches=batches,
        targets=targets,
        text_bytes=text_bytes,
        document_end=tokenizer.eod_id if _within_documents(config.packing) else None,
        checkpoints=Checkpoints(context.work, config.training.keep_checkpoints, fingerprint),
        metrics=MetricsFile(context.work / METRICS),
        report=context.report,
        accelerator=accelerator,
    )


def _within_documents(packing: PackingConfig) -> bool:
    """Whether attention must be kept inside documents; a context of one document cannot leave it."""
    return not isinstance(packing, OneDocumentPacking) and packing.attention == "document"


def train_or_resume(run: Run, config: RunConfig, tokenizer: Tokenizer) -> float:
    """Train on from the newest whole checkpoint, else from where `start` says; returns all seconds of training."""
    resumed = run.checkpoints.newest(limit=min(run.metrics.complete_steps(), run.budget.steps))
    return train(run, _weights(config, tokenizer, resumed), resumed)


def _weights(config: RunConfig, tokenizer: Tokenizer, resumed: Checkpoint | None) -> Any:
    if resumed:
        return load_model(resumed.path)
    return initial_model(config, tokenizer)


def export(run: Run, tokenizer: Path, output: Path) -> None:
    """Fill the artefact from the working directory: the last checkpoints, the last optimizer state, the records."""
    exported = Tokenizer.load(tokenizer).to_huggingface()
    for step in run.checkpoints.steps()[-run.training.keep_checkpoints :]:
        target = output / step_name(step)
        target.mkdir()
        for file in run.checkpoints.read(step).model_files():
            _link_or_copy(file, target / file.name)
        exported.save_pretrained(target)
        shutil.copytree(tokenizer, target / "tokenizer", dirs_exist_ok=True)
    last = run.checkpoints.read(run.budget.steps).path
    (output / "state").mkdir()
    for name in (OPTIMIZER, STATE):
        _link_or_copy(last / name, output / "state" / name)
    shutil.copy2(run.metrics.path, output / METRICS)
    write_json(output / "contexts.json", contexts_record(run))


def contexts_record(run: Run) -> dict[str, JSON]:
    """Which contexts were read, and of how many."""
    batches = run.batches
    return {
        "contexts": batches.contexts.count,
        "context_length": batches.contexts.context_length,
        "global_batch": batches.global_batch,
        "seed": batches.seed,
        "shuffle": batches.shuffle,
        "steps": run.budget.steps,
        "epochs": run.budget.epochs,
        "tokens": run.budget.tokens,
        "tokens_per_epoch": int(run.targets.sum()),
        "text_bytes": run.budget.text_bytes,
        "text_bytes_per_epoch": int(run.text_bytes.sum()),
        "indices_sha256": contexts_digest(batches, run.budget.steps),
    }


def _link_or_copy(source: Path, target: Path) -> None:
    """A hard link spares a copy of the weights; file systems without links get the copy."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
