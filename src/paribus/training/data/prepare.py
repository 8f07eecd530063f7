"""From the artefacts of a run to what training works with."""

import math
from dataclasses import dataclass, replace
from typing import Any

from paribus.config.groups.ordering import BestFitPacking, within_documents
from paribus.config.groups.training import amount_path, kept_steps, too_few_checkpoints
from paribus.config.schema import RunConfig, in_contexts
from paribus.errors import ConfigurationError
from paribus.modeling.parameters import training_flops
from paribus.ordering.contexts import open_contexts
from paribus.ordering.ordered_text import MeasuredContexts
from paribus.ordering.packing import Contexts
from paribus.ordering.pairs import PairContexts
from paribus.ordering.shuffle import Traversal
from paribus.stage import JSON, StageContext
from paribus.store.files import METRICS
from paribus.tokenization import Tokenizer
from paribus.training.data.batches import Amounts, Batches, Integers, SourceTokens
from paribus.training.data.budget import amount_of, resolve_budget
from paribus.training.data.fingerprint import data_fingerprint, recipe_fingerprint
from paribus.training.loop import Run
from paribus.training.processes.host import ALONE, Host
from paribus.training.state.checkpoint import Checkpoints
from paribus.training.state.metrics import MetricsFile
from paribus.training.step.loss import DocumentEnd


@dataclass(frozen=True)
class Data:
    """What a training reads, and the configuration with its context and batch in tokens and contexts."""

    config: RunConfig
    contexts: Contexts
    traversal: Traversal
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


def prepare(context: StageContext, tokenizer: Tokenizer, data: Data, accelerator: Any, host: Host = ALONE) -> Run:
    """Resolve the budget and open the working directory; nothing is trained yet.

    Raises ConfigurationError for a budget that takes more epochs than it may. One that leaves fewer checkpoints than
    are to be scored is told.
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
    # Runs that are scored by fewer share this training, so it says so early and leaves refusing to the evaluation.
    if few := too_few_checkpoints(config.training, budget.steps, config.evaluation.checkpoints_read):
        context.report.message(f"this run cannot be scored: {config.evaluation.checkpoints_path}: {few}")
    draws = batches.traversal.draws
    if tokenizer.settings.encoder == "dropout" and isinstance(data.contexts, PairContexts) and budget.epochs > draws:
        often = "once" if draws == 1 else f"{draws} times"
        context.report.message(
            f"BPE-dropout drew the tokens {often} for {budget.epochs:.3g} epochs, which read them again: "
            f"encoder.draws={math.ceil(budget.epochs)} gives every epoch its own"
        )
    document_end = DocumentEnd(tokenizer.eos_id, begins=isinstance(config.packing, BestFitPacking))
    fingerprint = data.fingerprint | recipe_fingerprint(config, context.inputs["tokens"] / "tokenizer")
    return Run(
        training=config.training,
        budget=budget,
        batches=batches,
        dropout_seed=config.seed_of("dropout"),
        targets=targets,
        text_bytes=text_bytes,
        document_end=document_end if within_documents(config.packing) else None,
        checkpoints=Checkpoints(context.work, frozenset(kept_steps(config.training, budget.steps)), fingerprint),
        metrics=MetricsFile(context.work / METRICS),
        report=context.report,
        accelerator=accelerator,
        host=host,
    )


def _step_flops(
    config: RunConfig, tokenizer: Tokenizer, batches: Batches, targets: Integers, sources: Amounts | None
) -> int:
    """FLOPs of one global batch: of contexts with their padding, of pairs the mean of an epoch without.

    How much of a pair's row is padding, the micro-batch decides, which must not decide how long a run trains.
    """
    contexts = batches.contexts
    if sources is None:
        return training_flops(config.model, tokenizer.vocab_size, batches.global_batch * contexts.context_length)
    epoch = training_flops(config.model, tokenizer.vocab_size, int(targets.sum()), int(sources.sum()))
    return epoch * batches.global_batch // contexts.count
