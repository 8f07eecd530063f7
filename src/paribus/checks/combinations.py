"""Combinations of valid values that cannot work together."""

from collections.abc import Collection, Iterator
from typing import Any, get_type_hints

from paribus.checks.plan import impossible_plan
from paribus.checks.schedule import impossible_schedule
from paribus.checks.scoring import impossible_scoring
from paribus.checks.start import impossible_start
from paribus.config.byte_sizes import divided, impossible_byte_sizes
from paribus.config.groups.corpus import ParallelCorpus
from paribus.config.groups.embedding import TransformersEmbedder
from paribus.config.groups.model import EncoderDecoderModel
from paribus.config.groups.ordering import InContextOrdering, InContextReleasedOrdering, NearestOrdering
from paribus.config.groups.packing import ConcatenatePacking, PairPacking
from paribus.config.groups.tokenization import (
    BytesTokenizer,
    DropoutEncoder,
    ExistingPretokenizer,
    ExistingTokenizer,
    LongestFirstEncoder,
    MergeRankEncoder,
    PredictiveEntropyPretokenizer,
    ScaffoldBPETokenizer,
    SpansPretokenizer,
    TrainableTokenizerConfig,
    UnigramTokenizer,
    ViterbiEncoder,
    WholeEncoder,
    WordsTokenizer,
    vocabulary_size,
)
from paribus.config.groups.training import TrainingConfig
from paribus.config.schema import RunConfig, dataclasses_of
from paribus.config.validate import did_you_mean
from paribus.modeling.parameters import match_problems, shape_problems

_OWN_ENCODER = ", or in place of both an arm, which has its own encoder: -m arm=bpe,unigram"
"""What compares tokenizers that have no encoder in common, where one of them was given with that of another."""


def impossible(config: RunConfig) -> Iterator[tuple[str, str]]:
    """(path, what is wrong and what would be right) of every impossible combination."""
    yield from _factors(config)
    yield from impossible_byte_sizes(config)
    yield from _tokenization(config)
    yield from _ordering(config)
    yield from _model(config)
    yield from impossible_start(config)
    yield from _training(config)
    yield from impossible_plan(config.plan)
    yield from impossible_scoring(config)


def _factors(config: RunConfig) -> Iterator[tuple[str, str]]:
    """A declared factor must lead to a group or a field of it; one that only some choices of the group have will do."""
    for position, factor in enumerate(config.factors):
        classes: list[type[Any]] = [RunConfig]
        for part in factor.split("."):
            hints = [get_type_hints(cls) for cls in classes]
            known = dict.fromkeys(name for each in hints for name in each)
            if part not in known:
                yield f"factors[{position}]", f"{factor!r} is no path of the configuration{_nearest(part, known)}"
                break
            classes = [cls for each in hints if part in each for cls in dataclasses_of(each[part])]


def _nearest(part: str, known: Collection[str]) -> str:
    """The names to choose from; none below a field."""
    if not known:
        return ""
    return f"; {did_you_mean(part, known)}known: {', '.join(known)}"


def _tokenization(config: RunConfig) -> Iterator[tuple[str, str]]:
    tokenizer = config.tokenizer
    yield from _encoder(config)
    existing = isinstance(config.pretokenizer, ExistingPretokenizer)
    if isinstance(tokenizer, ExistingTokenizer):
        if not existing:
            message = f"{config.pretokenizer.kind} beside tokenizer=existing, which brings its own; leave it out"
            yield "pretokenizer.kind", message
        return
    if existing:
        yield "pretokenizer.kind", f"existing goes with tokenizer=existing only, not with {tokenizer.kind}"
    yield from _loss(tokenizer, config.pretokenizer.kind)
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
            f"or fewest{_OWN_ENCODER}",
        )
    elif isinstance(tokenizer, WordsTokenizer) and isinstance(encoder, MergeRankEncoder | DropoutEncoder):
        yield (
            "encoder.kind",
            f"{encoder.kind} needs merges, and tokenizer=words has none; use encoder=whole{_OWN_ENCODER}",
        )
    elif isinstance(tokenizer, WordsTokenizer) and _alone(tokenizer) and not isinstance(encoder, WholeEncoder):
        yield (
            "encoder.kind",
            f"{encoder.kind} needs units, and tokenizer=words with unknown=token has none; use encoder=whole",
        )
    elif isinstance(encoder, ViterbiEncoder) and not isinstance(tokenizer, UnigramTokenizer | ExistingTokenizer):
        yield (
            "encoder.kind",
            f"viterbi needs the scores of tokenizer=unigram; with {tokenizer.kind} use encoder=fewest{_OWN_ENCODER}",
        )
    cut = isinstance(config.pretokenizer, SpansPretokenizer | PredictiveEntropyPretokenizer)
    if isinstance(encoder, DropoutEncoder) and cut:
        yield (
            "encoder.kind",
            "dropout needs a pre-tokenizer by pattern (gpt2, gpt2_digits, gpt4, whitespace, punctuation, none)",
        )
    if isinstance(encoder, DropoutEncoder) and encoder.draws > 1 and not isinstance(config.packing, PairPacking):
        yield (
            "encoder.draws",
            f"{encoder.draws} draws take turns by epochs, which packing=pair has; packing={config.packing.kind} cuts "
            "contexts elsewhere in every draw: use encoder=dropout, which draws once, or pairs and packing=pair",
        )
    expanded = isinstance(encoder, LongestFirstEncoder) and encoder.candidates == "expanded"
    if expanded and not isinstance(tokenizer, ScaffoldBPETokenizer | ExistingTokenizer):
        yield "encoder.candidates", "expanded needs scaffolds: use tokenizer=scaffold_bpe, or candidates=normal"


def _alone(tokenizer: WordsTokenizer) -> bool:
    """Whether the vocabulary is words alone, without units to spell others in."""
    return tokenizer.unit == "character" and tokenizer.unknown == "token"


def _loss(tokenizer: TrainableTokenizerConfig, pretokenizer: str) -> Iterator[tuple[str, str]]:
    if pretokenizer == "stripped":
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
    ordering, retrieved = config.ordering, config.neighbours.retrieved
    match ordering:
        case InContextOrdering() | InContextReleasedOrdering() | NearestOrdering() if ordering.neighbours > retrieved:
            yield "ordering.neighbours", f"{ordering.neighbours} exceeds neighbours.retrieved={retrieved}"
    if isinstance(ordering, NearestOrdering) and not isinstance(config.packing, ConcatenatePacking):
        message = f"{config.packing.kind} does not begin a context at each document, as ordering=nn wants"
        yield "packing.kind", f"{message}; use packing=concatenate"
    neighbours = config.neighbours
    if neighbours.index in ("flat", "ivf") and neighbours.code_size is not None:
        yield "neighbours.code_size", f"index={neighbours.index} keeps whole vectors; use index=ivf_pq"
    if neighbours.device == "gpu" and neighbours.index != "flat":
        yield (
            "neighbours.device",
            f"gpu compares all vectors, index={neighbours.index} does not; use neighbours.index=flat, or device=auto",
        )
    if neighbours.index == "flat" and (neighbours.lists or neighbours.probes):
        yield "neighbours.index", "flat searches everything and has no lists or probes; use ivf or ivf_pq"
    if neighbours.lists and neighbours.probes and neighbours.probes > neighbours.lists:
        yield "neighbours.probes", f"{neighbours.probes} exceeds neighbours.lists={neighbours.lists}"
    if isinstance(config.embedder, TransformersEmbedder) and config.embedder.path == "":
        yield "embedder.path", "must name a directory or a model of the hub"


def _model(config: RunConfig) -> Iterator[tuple[str, str]]:
    model, tokenizer = config.model, config.tokenizer
    yield from shape_problems(model)
    if not isinstance(tokenizer, ExistingTokenizer):
        yield from match_problems(model, vocabulary_size(tokenizer))
    yield from _pairs(config)


def _pairs(config: RunConfig) -> Iterator[tuple[str, str]]:
    """An encoder-decoder, a corpus of pairs and rows of pairs go together or not at all."""
    translates = isinstance(config.model, EncoderDecoderModel)
    if translates and not isinstance(config.corpus, ParallelCorpus):
        message = f"{config.corpus.kind} has documents, and model.kind=encoder_decoder trains on pairs"
        yield (
            "corpus.kind",
            f"{message} of source and target; use corpus=parallel, or a model that is llama or gpt_neox",
        )
    if isinstance(config.corpus, ParallelCorpus) and not translates:
        yield (
            "model.kind",
            f"{config.model.kind} trains on documents, and corpus=parallel has pairs; use model=wmt_small",
        )
    if isinstance(config.packing, PairPacking) != translates:
        right = "pair" if translates else "concatenate, best_fit or one_document"
        yield "packing.kind", f"{config.packing.kind} does not go with model.kind={config.model.kind}; use {right}"


def _training(config: RunConfig) -> Iterator[tuple[str, str]]:
    # What training of a vocabulary may end below is judged where the output root is known, which may have it already.
    certain = isinstance(config.tokenizer, BytesTokenizer)
    yield from impossible_schedule(config, known_vocabulary(config) if certain else None)
    yield from _shares(config.training)


def known_vocabulary(config: RunConfig) -> int | None:
    """Number of tokens that is asked for, None where only the files of a tokenizer say it."""
    return None if isinstance(config.tokenizer, ExistingTokenizer) else vocabulary_size(config.tokenizer)


def _shards(training: TrainingConfig, processes: int) -> Iterator[tuple[str, str]]:
    """Groups of processes that divide weights, where `processes` of them are asked for."""
    path, shards = "training.shard_processes", training.shard_processes
    if shards and training.parallel != "fsdp":
        message = f"{shards}, but training.parallel={training.parallel} divides no weights"
        yield path, f"{message}; use training.parallel=fsdp, or 0"
    elif shards and training.processes and training.nodes and processes % shards:
        given = f"training.processes={training.processes} x training.nodes={training.nodes}"
        yield path, f"{shards} make no groups of {given}; use a divisor of {processes}, or 0 for all of them"


def _shares(training: TrainingConfig) -> Iterator[tuple[str, str]]:
    """How processes and micro-batches divide the global batch, as far as their numbers are given."""
    processes = max(1, training.processes) * max(1, training.nodes)
    path, contexts = divided(training)
    share, rest = divmod(contexts, processes)
    if rest:
        given = f"training.processes={training.processes} x training.nodes={training.nodes}"
        yield path, f"{contexts} cannot be shared evenly by {given}"
    elif training.batch_bytes is None and share and training.micro_batch and share % min(training.micro_batch, share):
        of = f"training.global_batch={training.global_batch}" + (f" / {processes} processes" if processes > 1 else "")
        yield "training.micro_batch", f"{training.micro_batch} does not divide {of}"
    yield from _shards(training, processes)
    if training.deterministic and training.compile == "always":
        yield "training.compile", "always compiles layers, which training.deterministic forbids; use auto or never"
    if training.deterministic and not training.micro_batch:
        yield (
            "training.micro_batch",
            "0 takes what a trial finds, which rounds otherwise at times; deterministic needs one",
        )
    if processes > 1 and ":" in training.device:
        message = f"{training.device} is one device, but {processes} processes take one each; use cuda or auto"
        yield "training.device", message
