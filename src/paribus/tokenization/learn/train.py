"""From texts to a vocabulary: count pre-tokens, choose the alphabet, train, number the tokens."""

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from paribus.errors import ConfigurationError
from paribus.native.registry import BPE, COUNTING, TABLES, UNITS, WORDPIECE
from paribus.tokenization.kernels import layout
from paribus.tokenization.learn.bpe import MergeTraining, Progress, Stopped, train_bpe
from paribus.tokenization.learn.scaffold_bpe import train_scaffold_bpe
from paribus.tokenization.learn.symbol_corpus import SymbolCorpus, observed_characters
from paribus.tokenization.learn.token_columns import Alphabet, TrainedTokens, columns
from paribus.tokenization.learn.unigram import LONGEST, PRUNE, UnigramTraining, train_unigram_table
from paribus.tokenization.learn.word_counts import WordCounts, count_words, decoded
from paribus.tokenization.learn.wordpiece import train_wordpiece
from paribus.tokenization.learn.words import common_words, word_columns, words_over_units
from paribus.tokenization.pretokenize.unicode_classes import class_table
from paribus.tokenization.settings import Algorithm, Settings
from paribus.tokenization.vocabulary.units import UnitKind, Unknown
from paribus.tokenization.vocabulary.vocabulary import Vocabulary

_FALLBACK_UNITS = 256
_NO_MERGES = np.empty((0, 3), np.int32)
_MERGERS = {"bpe": train_bpe, "bytes": train_bpe, "scaffold_bpe": train_scaffold_bpe, "wordpiece": train_wordpiece}
_KERNELS = {"bpe": BPE, "bytes": BPE, "scaffold_bpe": BPE, "wordpiece": WORDPIECE}


class PreTokenPieces(Protocol):
    """Anything that cuts a text into pre-tokens."""

    def pieces(self, text: str) -> list[str]:
        """The pre-tokens of `text` in order."""


@dataclass(frozen=True, kw_only=True)
class TrainingRequest:
    """What to train; `unknown=None` takes byte fallback where its 256 tokens fit, and otherwise refuses."""

    algorithm: Algorithm
    vocab_size: int | None
    unit: UnitKind
    unknown: Unknown | None
    special_tokens: tuple[str, ...]
    prune: float = PRUNE
    """Share of the tokens that Unigram removes a round."""
    continuation: bool = False
    """Whether a unit inside a word is another one than the same unit at its start."""


@dataclass(frozen=True, eq=False)
class TrainedVocabulary:
    """A vocabulary, how unknown characters are treated, and what training reported."""

    vocabulary: Vocabulary
    unknown: Unknown
    stopped: Stopped
    string_equal_pairs: int
    """Merged pairs whose string was a token already; see `Training`."""

    def adopted(self, settings: Settings) -> Settings:
        """The settings of the tokenizer that has this vocabulary."""
        return replace(settings, unknown=self.unknown, stopped=self.stopped, string_equal_pairs=self.string_equal_pairs)

    def warn_of_fewer(self, request: TrainingRequest) -> None:
        """UserWarning at the caller of `Tokenizer.train` where there are fewer tokens than were asked for."""
        size, asked = self.vocabulary.size, request.vocab_size
        if request.algorithm != "bytes" and asked is not None and size < asked:
            warnings.warn(
                f"vocab_size={asked} was asked for, and the texts gave {size} tokens: no pair is left to merge; give "
                "more text or ask for fewer",
                stacklevel=3,
            )


def training_kernels(algorithm: Algorithm) -> list[str]:
    """The compiled loops that training by `algorithm` runs, from counting to the tables of the tokenizer."""
    return [*COUNTING, *UNITS, *_KERNELS.get(algorithm, ()), *TABLES]


def count_pretokens(texts: Iterable[str | bytes], pretokenizer: PreTokenPieces, *, threads: int = 1) -> WordCounts:
    """How often each pre-token occurs in `texts`, strings or UTF-8; the same for any number of threads."""
    name = getattr(pretokenizer, "name", None)
    if name in layout.PATTERNS:
        return count_words(texts, layout.PATTERNS.index(name), class_table(name), threads=threads)
    pieces = (piece for text in texts for piece in pretokenizer.pieces(decoded(text)))
    return count_words(pieces, layout.NONE, class_table(), threads=threads)


def train_vocabulary(
    words: WordCounts, request: TrainingRequest, progress: Progress | None = None
) -> TrainedVocabulary:
    """Train on pre-token counts. Raises ConfigurationError for a size below the alphabet and special tokens."""
    if request.algorithm == "words" and request.unit == "character" and request.unknown == "token":
        return _words_alone(words, request)
    alphabet, unknown = _alphabet(words, request)
    extra = len(request.special_tokens) + (unknown == "token")
    size = _size(request, alphabet, extra, unknown)
    corpus = _corpus(words, alphabet)
    replaced = unknown == "token" and request.unit == "character"
    stopped: Stopped
    if request.algorithm == "unigram":
        pieces = _unigram(corpus, size, request, progress)
        tokens, stopped, merges, equal = _unigram_tokens(pieces, corpus), pieces.stopped, _NO_MERGES, 0
    elif request.algorithm == "words":
        tokens, merges, equal = words_over_units(corpus, size), _NO_MERGES, 0
        stopped = "vocab_size" if len(tokens.scaffold) == size else "no_pair_left"
    else:
        training = _MERGERS[request.algorithm](corpus, size, progress)
        tokens, stopped, merges = _merged_tokens(training), training.stopped, training.merges
        equal = training.string_equal_pairs
    described = columns(tokens, alphabet, request.special_tokens, unknown=replaced)
    return TrainedVocabulary(Vocabulary(described, merges, request.unit), unknown, stopped, equal)


def _words_alone(words: WordCounts, request: TrainingRequest) -> TrainedVocabulary:
    if request.vocab_size is None or request.vocab_size <= len(request.special_tokens) + 1:
        raise ConfigurationError(
            f"tokenizer.vocab_size: {request.vocab_size} leaves no room for words beside the unknown token and "
            f"{len(request.special_tokens)} special tokens"
        )
    size = request.vocab_size - len(request.special_tokens) - 1
    chosen = common_words(words, size)
    vocabulary = Vocabulary(word_columns(chosen, request.special_tokens), _NO_MERGES, request.unit)
    return TrainedVocabulary(vocabulary, "token", "vocab_size" if len(chosen) == size else "no_pair_left", 0)


def _alphabet(words: WordCounts, request: TrainingRequest) -> tuple[Alphabet, Unknown]:
    if request.unit == "byte":
        return Alphabet(None, marked=request.continuation), "byte_fallback"
    observed = observed_characters(words)
    unknown = request.unknown or _fitting_unknown(request, len(observed))
    return Alphabet(observed, fallback=unknown == "byte_fallback", marked=request.continuation), unknown


def _fitting_unknown(request: TrainingRequest, observed: int) -> Unknown:
    needed = (observed + _FALLBACK_UNITS) * (1 + request.continuation) + len(request.special_tokens)
    return "byte_fallback" if request.vocab_size is None or request.vocab_size >= needed else "refuse"


def _size(request: TrainingRequest, alphabet: Alphabet, extra: int, unknown: Unknown) -> int:
    smallest = alphabet.size + extra
    if request.vocab_size is None and request.algorithm != "bytes":
        raise ConfigurationError(f"tokenizer.vocab_size: {request.algorithm} needs a vocabulary size")
    if request.vocab_size is not None and request.vocab_size < smallest:
        fallback = ", the 256 bytes of byte_fallback included" if alphabet.fallback else ""
        marks = ", continuation forms included" if alphabet.marked else ""
        unknown_note = " (the unknown token included)" if unknown == "token" else ""
        raise ConfigurationError(
            f"tokenizer.vocab_size: {request.vocab_size} is below the alphabet of {alphabet.size} units"
            f"{fallback}{marks} and {extra} special tokens{unknown_note}; it must be at least {smallest}"
        )
    return alphabet.size if request.algorithm == "bytes" else (request.vocab_size or 0) - extra


def _corpus(words: WordCounts, alphabet: Alphabet) -> SymbolCorpus:
    if alphabet.characters is None:
        return SymbolCorpus.of_bytes(words, marked=alphabet.marked)
    others = _FALLBACK_UNITS * alphabet.fallback
    return SymbolCorpus.of_characters(words, alphabet.characters, others=others, marked=alphabet.marked)


def _merged_tokens(training: MergeTraining) -> TrainedTokens:
    units, offsets = training.unit_sequences()
    return TrainedTokens(
        units,
        offsets,
        training.frequencies,
        np.column_stack([training.left, training.right]),
        training.scaffold,
        np.zeros(len(training.left)),
    )


def _unigram(corpus: SymbolCorpus, size: int, request: TrainingRequest, progress: Progress | None) -> UnigramTraining:
    units, offsets = corpus.words()
    return train_unigram_table(
        units,
        offsets,
        corpus.weights,
        corpus.units,
        size,
        longest=LONGEST[request.unit],
        prune=request.prune,
        progress=progress,
    )


def _unigram_tokens(training: UnigramTraining, corpus: SymbolCorpus) -> TrainedTokens:
    count = len(training.tokens)
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum([len(token) for token in training.tokens], out=offsets[1:])
    frequencies = np.zeros(count, np.int64)
    frequencies[: corpus.units] = corpus.frequencies
    return TrainedTokens(
        np.fromiter((unit for token in training.tokens for unit in token), np.int32, int(offsets[-1])),
        offsets,
        frequencies,
        np.full((count, 2), -1, np.int32),
        np.zeros(count, np.bool_),
        training.scores,
    )
