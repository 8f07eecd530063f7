"""Combinations of valid values that cannot work together."""

from collections.abc import Iterator

from paribus.config.groups.ordering import InContextOrdering
from paribus.config.groups.tokenization import (
    BytesTokenizer,
    DropoutEncoder,
    LongestFirstEncoder,
    MergeRankEncoder,
    PatternPretokenizer,
    ScaffoldBPETokenizer,
    SpansPretokenizer,
    UnigramTokenizer,
    ViterbiEncoder,
)
from paribus.config.groups.training import EqualTokensBudget
from paribus.config.schema import RunConfig


def impossible(config: RunConfig) -> Iterator[tuple[str, str]]:
    """(path, what is wrong and what would be right) of every impossible combination."""
    yield from _tokenization(config)
    yield from _ordering(config)
    yield from _model(config)
    yield from _training(config)
    yield from _evaluation(config)


def _tokenization(config: RunConfig) -> Iterator[tuple[str, str]]:
    tokenizer = config.tokenizer
    yield from _encoder(config)
    yield from _loss(config)
    if not isinstance(tokenizer, BytesTokenizer):
        base = len(tokenizer.special_tokens) + (256 if tokenizer.unit == "byte" else 1)
        if tokenizer.vocab_size < base:
            message = f"{tokenizer.vocab_size} is below the alphabet and special tokens ({base}); use {base} or more"
            yield "tokenizer.vocab_size", message
    if len(set(tokenizer.special_tokens)) < len(tokenizer.special_tokens) or "" in tokenizer.special_tokens:
        yield "tokenizer.special_tokens", "must be distinct and not empty"
    if isinstance(config.pretokenizer, SpansPretokenizer) and config.pretokenizer.max_length < 2:
        yield "pretokenizer.max_length", "a span has at least 2 characters"


def _encoder(config: RunConfig) -> Iterator[tuple[str, str]]:
    tokenizer, encoder = config.tokenizer, config.encoder
    if isinstance(tokenizer, BytesTokenizer) and not isinstance(encoder, MergeRankEncoder):
        yield "encoder.kind", f"{encoder.kind} has nothing to choose with tokenizer=bytes; use encoder=merge_rank"
    elif isinstance(tokenizer, UnigramTokenizer) and isinstance(encoder, MergeRankEncoder | DropoutEncoder):
        yield (
            "encoder.kind",
            f"{encoder.kind} needs merges, and tokenizer=unigram has none; use viterbi, longest_first, left_to_right "
            "or fewest",
        )
    elif isinstance(encoder, ViterbiEncoder) and not isinstance(tokenizer, UnigramTokenizer):
        yield "encoder.kind", f"viterbi needs the scores of tokenizer=unigram; with {tokenizer.kind} use encoder=fewest"
    if isinstance(encoder, DropoutEncoder) and not isinstance(config.pretokenizer, PatternPretokenizer):
        yield "encoder.kind", "dropout needs a pre-tokenizer by pattern (gpt2, gpt2_digits, gpt4, whitespace, none)"
    expanded = isinstance(encoder, LongestFirstEncoder) and encoder.candidates == "expanded"
    if expanded and not isinstance(tokenizer, ScaffoldBPETokenizer):
        yield "encoder.candidates", "expanded needs scaffolds: use tokenizer=scaffold_bpe, or candidates=normal"


def _loss(config: RunConfig) -> Iterator[tuple[str, str]]:
    tokenizer = config.tokenizer
    if config.pretokenizer.kind == "stripped":
        if isinstance(tokenizer, BytesTokenizer):
            yield "pretokenizer.kind", "stripped loses whitespace, which tokenizer=bytes keeps; use pretokenizer=none"
        elif tokenizer.lossless:
            yield (
                "pretokenizer.kind",
                "stripped loses whitespace and tokenizer.lossless=true; use whitespace, which keeps it, or say "
                "tokenizer.lossless=false",
            )
    if isinstance(tokenizer, BytesTokenizer) or not tokenizer.lossless:
        return
    if tokenizer.unit == "character" and tokenizer.unknown == "token":
        message = "token loses characters and tokenizer.lossless=true; use byte_fallback, or tokenizer.lossless=false"
        yield "tokenizer.unknown", message


def _ordering(config: RunConfig) -> Iterator[tuple[str, str]]:
    ordering = config.ordering
    if isinstance(ordering, InContextOrdering) and ordering.path_neighbours > ordering.retrieved_neighbours:
        message = f"{ordering.path_neighbours} exceeds ordering.retrieved_neighbours={ordering.retrieved_neighbours}"
        yield "ordering.path_neighbours", message


def _model(config: RunConfig) -> Iterator[tuple[str, str]]:
    model = config.model
    if model.width % model.heads:
        yield "model.heads", f"{model.heads} does not divide model.width={model.width}"
    elif (model.width // model.heads) % 2:
        yield "model.heads", f"model.width / model.heads = {model.width // model.heads} must be even (rotary positions)"
    if model.context_length < 2:
        yield "model.context_length", "must be at least 2"


def _training(config: RunConfig) -> Iterator[tuple[str, str]]:
    training, budget = config.training, config.budget
    step_tokens = training.global_batch * config.model.context_length
    if isinstance(budget, EqualTokensBudget):
        if budget.tokens < step_tokens:
            step = f"training.global_batch x model.context_length = {step_tokens} tokens"
            yield "budget.tokens", f"{budget.tokens} is less than one step ({step})"
        elif training.warmup_steps >= -(-budget.tokens // step_tokens):
            steps = -(-budget.tokens // step_tokens)
            yield "training.warmup_steps", f"{training.warmup_steps} leaves none of the budget's {steps} steps"
    if training.global_batch % min(training.micro_batch, training.global_batch):
        message = f"{training.micro_batch} does not divide training.global_batch={training.global_batch}"
        yield "training.micro_batch", message


def _evaluation(config: RunConfig) -> Iterator[tuple[str, str]]:
    evaluation, kept = config.evaluation, config.training.keep_checkpoints
    if evaluation.last_checkpoints > kept:
        message = f"{evaluation.last_checkpoints} exceeds training.keep_checkpoints={kept}"
        yield "evaluation.last_checkpoints", message
    if len(set(evaluation.shots)) < len(evaluation.shots):
        yield "evaluation.shots", "lists a number twice"
