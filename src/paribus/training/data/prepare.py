"""From the artefacts of a run to what training works with."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from paribus.config.byte_sizes import in_contexts, in_tokens
from paribus.config.checkpoint_steps import kept_steps, too_few_checkpoints
from paribus.config.groups.packing import within_documents
from paribus.config.identity import digest
from paribus.config.schema import RunConfig
from paribus.modeling.counts import training_flops
from paribus.ordering.arrays import map_array, save_array
from paribus.ordering.orders.artifact import Order
from paribus.ordering.packing.contexts import Contexts
from paribus.ordering.packing.pack import pack
from paribus.ordering.traversal.text import OrderedText
from paribus.ordering.traversal.traversal import Traversal, traverse
from paribus.stage.context import JSON, StageContext
from paribus.store.file_names import METRICS
from paribus.tokenization import Tokenizer
from paribus.tokenization.encoded_corpus import EncodedCorpus
from paribus.training.data.batches import Batches, Integers, context_sources, context_targets, measured_text_bytes
from paribus.training.data.budget import amount_of, resolve_budget
from paribus.training.data.fingerprint import data_fingerprint, recipe_fingerprint
from paribus.training.loop import Run
from paribus.training.processes.host import ALONE, Host
from paribus.training.state.checkpoint import Checkpoints
from paribus.training.state.metrics import MetricsFile


@dataclass(frozen=True)
class Data:
    """What a training reads, and the configuration with its context and batch in tokens and contexts."""

    config: RunConfig
    contexts: Contexts
    traversal: Traversal
    targets: Integers
    """Tokens that each context predicts, int64 (count,)."""
    text_bytes: Integers
    """Bytes of source text of the targets of each context, int64 (count,)."""
    fingerprint: dict[str, JSON]


def open_data(context: StageContext, tokenizer: Tokenizer, host: Host) -> Data:
    """Open the encoded text in its order, packed into contexts.

    Raises DataError for a corpus smaller than one context.
    """
    config = context.config
    corpus, order = EncodedCorpus(context.inputs["tokens"]), Order(context.inputs["order"])
    context_bytes = config.model.context_bytes
    config = replace(config, model=in_tokens(config.model, corpus.bytes_per_token))
    length = config.model.context_length
    contexts = pack(config.packing, corpus.ids, corpus.offsets, order, tokenizer.eos_id, length, corpus.source_lengths)
    fingerprint = data_fingerprint(corpus, order, contexts)
    byte_lengths = tokenizer.token_byte_lengths()
    kept = _Kept(context.work, digest(fingerprint)[:16], host)
    text = OrderedText(contexts.documents, corpus.source_bytes, byte_lengths)
    places = kept.array("places", lambda: text.places(contexts)) if config.packing.shuffle == "text" else None
    seed = config.seed_of("contexts")
    traversal = traverse(config.packing, contexts, text, seed, context_bytes=context_bytes, places=places)
    text_bytes = kept.array("text_bytes", lambda: measured_text_bytes(contexts, tokenizer, corpus.source_bytes))
    config = replace(config, training=in_contexts(config.training, float(text_bytes.mean())))
    return Data(config, contexts, traversal, context_targets(contexts), text_bytes, fingerprint)


def prepare(context: StageContext, tokenizer: Tokenizer, data: Data, accelerator: Any, host: Host = ALONE) -> Run:
    """Resolve the budget and open the working directory; nothing is trained yet.

    Raises ConfigurationError for a budget that takes more epochs than it may. One that leaves fewer checkpoints than
    are to be scored is told.
    """
    config, targets = data.config, data.targets
    batches = Batches(data.contexts, config.training.global_batch, data.traversal)
    sources = context_sources(data.contexts)
    step_flops = _step_flops(config, tokenizer, batches, targets, sources)
    budget = resolve_budget(config.budget, batches, targets, data.text_bytes, step_flops)
    if sources is not None:
        read = amount_of(budget.steps * batches.global_batch, batches, sources)
        budget = replace(budget, source_tokens=read, positions=budget.tokens + read)
    # Runs that are scored by fewer share this training, so it says so early and leaves refusing to the evaluation.
    if few := too_few_checkpoints(config.training, budget.steps, config.evaluation.last_checkpoints):
        context.report.message(f"this run cannot be scored: evaluation.last_checkpoints: {few}")
    fingerprint = data.fingerprint | recipe_fingerprint(config, context.inputs["tokens"] / "tokenizer")
    return Run(
        training=config.training,
        budget=budget,
        batches=batches,
        dropout_seed=config.seed_of("dropout"),
        targets=targets,
        text_bytes=data.text_bytes,
        document_end=tokenizer.eos_id if within_documents(config.packing) else None,
        checkpoints=Checkpoints(context.work, frozenset(kept_steps(config.training, budget.steps)), fingerprint),
        metrics=MetricsFile(context.work / METRICS),
        report=context.report,
        accelerator=accelerator,
        host=host,
    )


@dataclass(frozen=True)
class _Kept:
    """Arrays for which the whole corpus is read: by one process, once, for all processes and resumptions."""

    work: Path
    data: str
    """Digest of what they are made of."""
    host: Host

    def array(self, name: str, make: Callable[[], Integers]) -> Integers:
        """The array of that name, memory-mapped."""
        path = self.work / f"{name}_{self.data}.npy"
        if self.host.main and not path.exists():
            save_array(path, make())
        self.host.wait()
        return map_array(path)


def _step_flops(
    config: RunConfig, tokenizer: Tokenizer, batches: Batches, targets: Integers, sources: Integers | None
) -> int:
    """FLOPs of one global batch: of contexts with their padding, of pairs the mean of an epoch without.

    How much of a pair's row is padding, the micro-batch decides, which must not decide how long a run trains.
    """
    contexts = batches.contexts
    if sources is None:
        return training_flops(config.model, tokenizer.vocab_size, batches.global_batch * contexts.context_length)
    epoch = training_flops(config.model, tokenizer.vocab_size, int(targets.sum()), int(sources.sum()))
    return epoch * batches.global_batch // contexts.count
