"""Length of a training: tokens, text, steps, epochs and FLOPs, before and after it has run.

Before anything is encoded, the bytes of text that a token stands for are estimated by a rule.
"""

from dataclasses import dataclass, replace
from math import log
from pathlib import Path
from typing import Any

from paribus.config.groups.ordering import NearestOrdering, PairPacking, pads
from paribus.config.groups.tokenization import (
    BytesTokenizer,
    ExistingTokenizer,
    TokenizerConfig,
    WordPieceTokenizer,
    vocabulary_size,
)
from paribus.config.groups.training import EqualFlopsBudget, EqualStepsBudget, EqualTextBudget, EqualTokensBudget
from paribus.config.schema import RunConfig, in_contexts, in_tokens
from paribus.errors import DataError
from paribus.modeling.parameters import training_flops
from paribus.pipeline.graph import Node
from paribus.pipeline.prepare import made_vocabulary
from paribus.pipeline.prepared import PreparedRun
from paribus.pipeline.root import OutputRoot
from paribus.training.start import first_config, has_first, steps_before


@dataclass(frozen=True)
class PairSize:
    """Mean pair of the training split; each side ends in a token that stands for no text."""

    source_tokens: float
    target_tokens: float
    target_bytes: float


@dataclass(frozen=True)
class Text:
    """Known sizes of the text that a run would read."""

    bytes_per_token: float
    """Bytes of text a predicted token, those that end documents included."""
    epoch_bytes: float | None
    """Bytes that one pass over the ordered documents reads; None where there is no corpus yet."""
    source: str = ""
    """Basis of the estimate of bytes a token; empty where they were counted."""
    pair: PairSize | None = None
    """Mean size of a pair, where there is a corpus of pairs."""


@dataclass(frozen=True)
class Length:
    """Length of a training; `estimated` names the figures that are not exact yet."""

    tokens: int
    text_bytes: int
    steps: int
    epochs: float | None
    """None where the amount of text is not known yet."""
    flops: float
    estimated: frozenset[str] = frozenset()
    steps_before: int = 0
    """Steps that belong to the training that it resumes."""

    @property
    def flops_left(self) -> float:
        """FLOPs of its own steps."""
        return self.flops - self.flops * self.steps_before / self.steps


@dataclass(frozen=True)
class VocabularySize:
    """Rows of the embedding table, special tokens included."""

    value: int
    exact: bool
    """True if it is from the record of the vocabulary, its files or the kind of tokenizer: training may end below the
    configured size, when no pair of the text is left."""


def known_vocabulary_size(config: RunConfig, vocabulary: Node, root: OutputRoot) -> VocabularySize:
    """Size on record, else of the files of an existing tokenizer, else as configured."""
    made, tokenizer = made_vocabulary(vocabulary, root), config.tokenizer
    if made is not None:
        return VocabularySize(made, exact=True)
    if not isinstance(tokenizer, ExistingTokenizer):
        return VocabularySize(vocabulary_size(tokenizer), exact=isinstance(tokenizer, BytesTokenizer))
    from paribus.tokenization.existing import vocabulary_size as size_of_files

    try:
        return VocabularySize(size_of_files(Path(tokenizer.path)), exact=True)
    except DataError:
        return VocabularySize(config.scale.vocab_size, exact=False)


def known_text(run: PreparedRun, root: OutputRoot) -> Text:
    """Sizes by the records of corpus, tokens and order, estimated where there are none."""
    results = {name: _recorded_result(run, root, name) for name in ("corpus", "tokens", "order")}
    corpus, encoded, order = results["corpus"], results["tokens"], results["order"]
    training, source, pair = (corpus["train"] if corpus else {}), "", None
    if encoded:
        # Sources of pairs, too, have an end-of-document token, and are taken to be as long as targets.
        ends = encoded["documents"] * (2 if "source_tokens" in encoded else 1)
        bytes_per_token = encoded["bytes"] / (encoded["tokens"] + ends)
        if "source_tokens" in encoded and training.get("target_bytes"):
            targets = encoded["tokens"] - encoded["source_tokens"]
            pair = _pair_size(encoded["source_tokens"], targets, encoded["documents"], training)
    else:
        size = known_vocabulary_size(run.job.config, run.nodes["vocabulary"], root)
        guess, rule = estimate_bytes_per_token(run.job.config.tokenizer, size.value)
        source, bytes_per_token = f"{guess:.3g} {rule}", guess
        if training.get("bytes"):
            ends = training["documents"] * (2 if "target_bytes" in training else 1)
            bytes_per_token = training["bytes"] / (training["bytes"] / guess + ends)
        if training.get("target_bytes"):
            sources, targets = training["bytes"] - training["target_bytes"], training["target_bytes"]
            pair = _pair_size(sources / guess, targets / guess, training["documents"], training)
    # Removed duplicates and repeated neighbours are taken to be as long as other documents.
    ordering, documents = run.job.config.ordering, training.get("documents", 0)
    if order is None and isinstance(ordering, NearestOrdering) and documents:
        entries = documents * (1 + min(ordering.neighbours, documents - 1))
        order = {"documents": documents, "removed": 0, "entries": entries, "groups": documents}
    readings = order["entries"] / (order["documents"] + order["removed"]) if order else 1.0
    predicted = training.get("target_bytes", training.get("bytes"))
    if predicted is None:
        return Text(bytes_per_token, None, source, pair)
    epoch_bytes, model = predicted * readings, run.job.config.model
    if order and "groups" in order:  # each group begins a context, and the rest beyond that context is not read
        context_bytes = model.context_bytes or model.context_length * bytes_per_token
        epoch_bytes = min(epoch_bytes, order["groups"] * context_bytes)
    return Text(bytes_per_token, epoch_bytes, source, pair)


def _pair_size(source_tokens: float, target_tokens: float, pairs: int, training: dict[str, Any]) -> PairSize:
    """Mean pair, by the tokens of all pairs without end-of-document tokens, and the record of the training split."""
    return PairSize(
        source_tokens=source_tokens / pairs + 1,
        target_tokens=target_tokens / pairs + 1,
        target_bytes=training["target_bytes"] / training["documents"],
    )


def corpus_text(run: PreparedRun, root: OutputRoot) -> dict[str, Any] | None:
    """Record of the training split: documents, bytes, and bytes of targets of pairs; None without a corpus."""
    corpus = _recorded_result(run, root, "corpus")
    return corpus["train"] if corpus else None


def _recorded_result(run: PreparedRun, root: OutputRoot, stage: str) -> dict[str, Any] | None:
    artefact = root.store.find(stage, run.nodes[stage].key)
    return artefact.record()["result"] if artefact else None


def trained_length(result: dict[str, Any]) -> Length:
    """The length of a finished training, from its record's result."""
    return Length(
        tokens=int(result["tokens"]),
        text_bytes=int(result["text_bytes"]),
        steps=int(result["steps"]),
        epochs=float(result["epochs"]),
        flops=float(result["flops"]),
        steps_before=int(result.get("first_step", 0)),
    )


def sized(config: RunConfig, text: Text) -> RunConfig:
    """The configuration with its context and batch in tokens and contexts, estimated where they are given in bytes."""
    model = in_tokens(config.model, text.bytes_per_token)
    context_bytes = text.pair.target_bytes if text.pair else text.bytes_per_token * model.context_length
    return replace(config, model=model, training=in_contexts(config.training, context_bytes))


def trained_sizes(config: RunConfig, result: dict[str, Any]) -> RunConfig:
    """The configuration with the context and batch of a finished training, from its record's result."""
    model, training = config.model, config.training
    if model.context_bytes is not None:
        model = replace(model, context_length=int(result["context_length"]), context_bytes=None)
    if training.batch_bytes is not None:
        training = replace(training, global_batch=int(result["global_batch"]), batch_bytes=None, batch_multiple=1)
    return replace(config, model=model, training=training)


@dataclass(frozen=True)
class _Step:
    """Text that a step reads, and FLOPs that it computes."""

    tokens: int
    text_bytes: float
    flops: int

    @classmethod
    def of(cls, config: RunConfig, vocabulary: VocabularySize, text: Text) -> "_Step":
        """Step of full contexts or, where the sizes of pairs are known, of pairs of the mean length."""
        model, batch, pair = config.model, config.training.global_batch, text.pair
        if pair is None or not isinstance(config.packing, PairPacking):
            tokens = sources = batch * model.context_length
            text_bytes = tokens * text.bytes_per_token
        else:
            fitting = min(1.0, model.context_length / pair.target_tokens)
            tokens = max(1, round(batch * pair.target_tokens * fitting))
            sources = round(batch * min(pair.source_tokens, model.context_length))
            text_bytes = batch * pair.target_bytes * fitting
        return cls(tokens, text_bytes, training_flops(model, vocabulary.value, tokens, source_tokens=sources))


def planned_length(run: RunConfig, vocabulary: VocabularySize, text: Text) -> Length:
    """The length of a training that has not run."""
    config = sized(run, text)
    step = _Step.of(config, vocabulary, text)
    steps = _planned_steps(config, step)
    text_bytes = config.budget.text if isinstance(config.budget, EqualTextBudget) else steps * step.text_bytes
    estimated = _estimated_figures(run)
    if not vocabulary.exact:  # it may become smaller than configured
        estimated |= {"flops", "parameters", "disk", "memory"}
        if isinstance(config.budget, EqualFlopsBudget):
            estimated |= {"tokens", "text_bytes", "steps"}
    # Steps of another training, or of the run's own first one, are not repeated.
    before = _planned_steps(first_config(run), step) if has_first(run) else steps_before(run)
    return Length(
        tokens=steps * step.tokens,
        text_bytes=round(text_bytes),
        steps=steps,
        epochs=None if text.epoch_bytes is None else text_bytes / max(1.0, text.epoch_bytes),
        flops=float(steps * step.flops),
        estimated=estimated,
        steps_before=min(before, steps),
    )


def _planned_steps(config: RunConfig, step: _Step) -> int:
    match config.budget:
        case EqualTokensBudget(tokens=tokens):
            return -(-tokens // step.tokens)
        case EqualTextBudget(text=text_bytes):
            return max(1, round(text_bytes / step.text_bytes))
        case EqualFlopsBudget(flops=flops):
            return -(-flops // step.flops)
        case EqualStepsBudget(steps=steps):
            return steps


def _estimated_figures(config: RunConfig) -> frozenset[str]:
    match config.budget:
        case EqualTextBudget():
            estimated = {"tokens", "steps", "flops"}
        case EqualTokensBudget():
            estimated = {"text_bytes"} | ({"tokens", "steps", "flops"} if pads(config.packing) else set())
        case EqualFlopsBudget() | EqualStepsBudget():
            estimated = {"text_bytes"} | ({"tokens"} if pads(config.packing) else set())
    if isinstance(config.packing, PairPacking):
        estimated.add("steps" if isinstance(config.budget, EqualFlopsBudget) else "flops")
    if config.training.batch_bytes is not None or config.model.context_bytes is not None:
        fixed = {EqualStepsBudget: "steps", EqualTextBudget: "text_bytes"}.get(type(config.budget))
        estimated |= {"tokens", "text_bytes", "steps", "flops", "memory"} - {fixed}
    return frozenset(estimated | {"epochs", "device_hours"})


RULE = (0.00147, -0.10397, 1.95541, -6.61883)
"""Rule for English by byte-level BPE: coefficients of a polynomial in the logarithm of the size, highest power first.

`benchmarks/bytes_per_token.py` fits them; docs/benchmarks.md gives their errors, also for other text.
"""
FITTED = (300, 65_536)
"""Sizes of the smallest and of the largest vocabulary that the rule was fitted on."""
ALL_BYTES = 256


def bytes_by_rule(vocabulary: int) -> float:
    """Bytes of English text a token of byte-level BPE; 1 for no more tokens than bytes, constant above the fit."""
    if vocabulary <= ALL_BYTES:
        return 1.0
    logarithm = log(min(vocabulary, FITTED[1]))
    value = 0.0
    for factor in RULE:
        value = value * logarithm + factor
    return max(1.0, value)


def estimate_bytes_per_token(tokenizer: TokenizerConfig, vocabulary: int) -> tuple[float, str]:
    """Bytes of text a token for a tokenizer with `vocabulary` tokens, and in words the basis of the estimate."""
    if isinstance(tokenizer, BytesTokenizer):
        return 1.0, "(tokenizer=bytes)"
    most = f", which is that of {FITTED[1]:,}, the largest it was fitted on" if vocabulary > FITTED[1] else ""
    short = isinstance(tokenizer, WordPieceTokenizer)
    far = "; WordPiece took 2 to 3.5 times as many tokens where it was measured" if short else ""
    return bytes_by_rule(vocabulary), f"by the rule for English text and BPE of {vocabulary:,} tokens{most}{far}"
