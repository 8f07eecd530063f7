"""From texts to a vocabulary: count pre-tokens, choose the alphabet, train, number the tokens."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from paribus.errors import ConfigurationError
from paribus.tokenization.bpe import BPETrainer, Progress, Training
from paribus.tokenization.pretokenizers import Pretokenizer
from paribus.tokenization.scaffold_bpe import ScaffoldBPETrainer
from paribus.tokenization.settings import Algorithm
from paribus.tokenization.units import (
    BYTE_ALPHABET,
    FALLBACK_ALPHABET,
    UNKNOWN_TOKEN,
    UnitKind,
    Unknown,
    characters,
    utf8,
)
from paribus.tokenization.vocabulary import Entry, EntryKind, Vocabulary


@dataclass(frozen=True, kw_only=True)
class TrainingRequest:
    """What to train; `unknown=None` takes byte fallback where its 256 tokens fit, and otherwise refuses."""

    algorithm: Algorithm
    vocab_size: int | None
    unit: UnitKind
    unknown: Unknown | None
    special_tokens: tuple[str, ...]


@dataclass(frozen=True)
class TrainedVocabulary:
    """A vocabulary, how unknown characters are treated, and what training reported."""

    vocabulary: Vocabulary
    unknown: Unknown
    training: Training


def count_pretokens(texts: Iterable[str], pretokenizer: Pretokenizer) -> Counter[str]:
    """How often each pre-token occurs in `texts`."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(pretokenizer.pieces(text))
    return counts


def train_vocabulary(
    words: Counter[str], request: TrainingRequest, progress: Progress | None = None
) -> TrainedVocabulary:
    """Train on pre-token counts. Raises ConfigurationError for a size below the alphabet and special tokens."""
    if request.algorithm == "bytes" or request.unit == "byte":
        alphabet: Sequence[str] = BYTE_ALPHABET
        unit: UnitKind = "byte"
        unknown: Unknown = "byte_fallback"
    else:
        observed, unit = characters(words), "character"
        unknown = request.unknown or _fitting_unknown(request, len(observed))
        alphabet = (*observed, *FALLBACK_ALPHABET) if unknown == "byte_fallback" else observed
    extra = len(request.special_tokens) + (unknown == "token")
    size = _size(request, alphabet, extra, unknown)
    training = _train(_as_units(words, unit), alphabet, size, request.algorithm, progress)
    return TrainedVocabulary(_vocabulary(training, request.special_tokens, unit, unknown), unknown, training)


def _fitting_unknown(request: TrainingRequest, observed: int) -> Unknown:
    needed = observed + len(FALLBACK_ALPHABET) + len(request.special_tokens)
    return "byte_fallback" if request.vocab_size is None or request.vocab_size >= needed else "refuse"


def _size(request: TrainingRequest, alphabet: Sequence[str], extra: int, unknown: Unknown) -> int:
    smallest = len(alphabet) + extra
    if request.vocab_size is None and request.algorithm != "bytes":
        raise ConfigurationError(f"tokenizer.vocab_size: {request.algorithm} needs a vocabulary size")
    if request.vocab_size is not None and request.vocab_size < smallest:
        fallback = ", the 256 bytes of byte_fallback included" if alphabet[-1] == FALLBACK_ALPHABET[-1] else ""
        unknown_note = " (the unknown token included)" if unknown == "token" else ""
        raise ConfigurationError(
            f"tokenizer.vocab_size: {request.vocab_size} is below the alphabet of {len(alphabet)} units{fallback} and "
            f"{extra} special tokens{unknown_note}; it must be at least {smallest}"
        )
    return len(alphabet) if request.algorithm == "bytes" else (request.vocab_size or 0) - extra


def _as_units(words: Counter[str], unit: UnitKind) -> dict[str, int]:
    if unit == "character":
        return dict(words)
    return {utf8(word).decode("latin-1"): count for word, count in words.items()}


def _train(
    words: dict[str, int], alphabet: Sequence[str], size: int, algorithm: Algorithm, progress: Progress | None
) -> Training:
    trainer = ScaffoldBPETrainer if algorithm == "scaffold_bpe" else BPETrainer
    return trainer(words, alphabet).train(size, progress)


def _vocabulary(training: Training, special: tuple[str, ...], unit: UnitKind, unknown: Unknown) -> Vocabulary:
    entries: list[Entry] = []
    identity = 0

    def append(spelling: bytes, rank: int | None, kind: EntryKind) -> None:
        nonlocal identity
        scaffold = rank is not None and training.scaffold[rank]
        entries.append(
            Entry(
                rank=len(entries),
                id=None if scaffold else identity,
                bytes=spelling,
                frequency=0 if rank is None else training.frequencies[rank],
                parents=None if rank is None else training.parents[rank],
                scaffold=scaffold,
                kind=kind,
            )
        )
        identity += not scaffold

    for rank, string in enumerate(training.tokens):
        spelling, kind = _spelling(string, unit, training.parents[rank] is not None)
        append(spelling, rank, kind)
    for string in special:
        append(utf8(string), None, "special")
    if unknown == "token" and unit == "character":
        append(utf8(UNKNOWN_TOKEN), None, "unknown")
    return Vocabulary.of(entries, training.merges, unit)


def _spelling(string: str, unit: UnitKind, merged: bool) -> tuple[bytes, EntryKind]:
    if unit == "byte":
        return string.encode("latin-1"), "token" if merged else "unit"
    if string in FALLBACK_ALPHABET:
        return bytes([FALLBACK_ALPHABET.index(string)]), "fallback"
    return utf8(string), "token" if merged else "unit"
