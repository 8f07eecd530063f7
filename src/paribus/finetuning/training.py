"""Fine-tuning on one task: the loop of the stage `training` over prompts and answers. Imports torch: import late."""

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from accelerate.utils import release_memory

from paribus.config.groups.evaluation import ScrollsFinetuning
from paribus.config.groups.training import EqualStepsBudget, TrainingConfig
from paribus.config.schema import RunConfig
from paribus.errors import NumericalError
from paribus.modeling.models import load_model
from paribus.modeling.parameters import training_flops
from paribus.ordering.packing import OrderedDocuments
from paribus.ordering.pairs import PromptContexts
from paribus.ordering.shuffle import ShuffledContexts
from paribus.stage import JSON, Reporter, StageContext
from paribus.store.files import METRICS
from paribus.tokenization import Tokenizer
from paribus.tokenization.encoded_corpus import EncodedCorpus
from paribus.training.checkpoint import Checkpoints
from paribus.training.data import Batches, context_targets, context_text_bytes, resolve_budget
from paribus.training.distributed import Requests
from paribus.training.loop import Run, train
from paribus.training.metrics import MetricsFile
from paribus.training.micro_batch import MicroBatch
from paribus.training.train import fitted_to_memory

ROWS = "rows"


@dataclass(frozen=True)
class Start:
    """What every task begins with."""

    step: int
    checkpoint: Path
    tokenizer: Tokenizer
    accelerator: Any
    precision: str
    requests: Requests
    """What signals ask of a training."""


@dataclass(frozen=True)
class TaskReporter:
    """Says of a training that it is fine-tuning on a task."""

    report: Reporter
    task: str

    def progress(self, done: float, total: float, *, unit: str, doing: str, detail: str = "") -> None:
        """Passed on as fine-tuning."""
        self.report.progress(done, total, unit=unit, doing=f"fine-tuning on {self.task}", detail=detail)

    def metric(self, name: str, value: float, *, step: int) -> None:
        """Passed on under the task's name."""
        self.report.metric(metric_name(self.task, name), value, step=step)

    def message(self, text: str) -> None:
        """Passed on."""
        self.report.message(text)


def metric_name(task: str, name: str) -> str:
    """`train/loss` of a task's fine-tuning."""
    return f"finetuning/{task}/{name.removeprefix('train/')}"


def recipe(config: RunConfig, examples: int) -> tuple[TrainingConfig, int]:
    """How a task with so many examples is trained on, and in how many steps: which no tokenizer decides."""
    finetuning = config.finetuning
    assert isinstance(finetuning, ScrollsFinetuning)
    steps = math.ceil(finetuning.epochs * examples / finetuning.global_batch)
    training = replace(
        config.training,
        learning_rate=finetuning.learning_rate,
        schedule="cosine",
        min_learning_rate_ratio=0.0,
        warmup_share=finetuning.warmup_share,
        warmup_steps=None,
        global_batch=finetuning.global_batch,
        batch_bytes=None,
        batch_multiple=1,
        micro_batch=min(config.training.micro_batch, finetuning.global_batch),
        checkpoints=1,
        keep_checkpoints=1,
        processes=1,
        nodes=1,
        parallel="ddp",
        shard_processes=0,
    )
    return training, steps


@dataclass(frozen=True)
class Finetuned:
    """A fine-tuned model on disk, and what its training was."""

    model: Path
    numbers: dict[str, JSON]


def finetune(context: StageContext, task: str, start: Start) -> Finetuned:
    """Train the model of `start` on the rows in `context.work`, going on from what is there already."""
    rows = EncodedCorpus(context.work / ROWS)
    training, steps = recipe(context.config, len(rows))
    config, report = replace(context.config, training=training), TaskReporter(context.report, task)
    context = replace(context, config=config, report=report)
    vocab_size, accelerator = start.tokenizer.vocab_size, start.accelerator
    kept = MicroBatch.of(context.work, training, accelerator.num_processes)
    fitted = fitted_to_memory(config, vocab_size, accelerator, start.precision, kept, report)
    run = _run(context, replace(training, micro_batch=fitted.micro_batch), rows, steps, start.accelerator)
    run = replace(run, micro_batch=kept, requests=start.requests)
    resumed = run.checkpoints.newest(limit=min(run.metrics.complete_steps(), steps))
    kept.keep(fitted.micro_batch, fitted.tried_on)
    try:
        train(run, load_model(resumed.path if resumed else start.checkpoint), resumed)
    except NumericalError as error:
        raise NumericalError(f"fine-tuning on {task} with finetuning.learning_rate: {error}") from error
    finally:
        # It keeps what it has prepared, and the next task would find that much less memory. It collects before it lets
        # go, while a model in bfloat16 or with compiled layers refers to itself: so once more.
        accelerator.free_memory()
        release_memory()
    numbers: dict[str, JSON] = {
        "steps": steps,
        "examples": len(rows),
        "epochs": run.budget.epochs,
        "answer_tokens_predicted": run.budget.tokens,
        "flops": run.budget.flops,
        "final_loss": run.metrics.recent("train/loss"),
    }
    return Finetuned(run.checkpoints.read(steps).path, numbers)


def _run(context: StageContext, training: TrainingConfig, rows: EncodedCorpus, steps: int, accelerator: Any) -> Run:
    config, tokenizer = context.config, rows.tokenizer
    assert rows.source_lengths is not None
    documents = OrderedDocuments(rows.ids, rows.offsets, np.arange(len(rows)), tokenizer.eos_id)
    contexts = PromptContexts(documents, config.model.context_length, rows.source_lengths)
    traversal = ShuffledContexts(contexts.count, config.seed_of("contexts"))
    batches = Batches(contexts, training.global_batch, traversal)
    targets, text = context_targets(contexts), context_text_bytes(contexts, tokenizer.token_byte_lengths())
    epoch = training_flops(config.model, tokenizer.vocab_size, rows.tokens)
    step_flops = epoch * training.global_batch // contexts.count
    budget = EqualStepsBudget(kind="equal_steps", steps=steps, max_epochs=None)
    return Run(
        training=training,
        budget=resolve_budget(budget, batches, targets, text, step_flops),
        batches=batches,
        dropout_seed=config.seed_of("dropout"),
        targets=targets,
        text_bytes=text,
        document_end=None,
        checkpoints=Checkpoints(context.work, frozenset({steps}), {"rows": len(rows), "steps": steps}),
        metrics=MetricsFile(context.work / METRICS),
        report=context.report,
        accelerator=accelerator,
    )
