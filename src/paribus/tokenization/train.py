"""From texts to a vocabulary: count pre-tokens, choose the alphabet, train, number the tokens."""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import Protocol

import numpy as np
import numpy.typing as npt

from paribus.errors import ConfigurationError
from paribus.native.registry import BPE, COUNTING, TABLES, UNITS, WORDPIECE
from paribus.tokenization.bpe import MergeTraining, Progress, Stopped, train_bpe, train_scaffold_bpe, train_wordpiece
from paribus.tokenization.counts import SymbolCorpus, WordCounts, count_words, decoded, observed_characters
from paribus.tokenization.kernels import layout
from paribus.tokenization.pretokenize import class_table
from paribus.tokenization.settings import Algorithm, Settings
from paribus.tokenization.unigram import LONGEST, PRUNE, UnigramTraining, train_unigram
from paribus.tokenization.vocabulary import (
    FALLBACK,
    SPECIAL,
    TOKEN,
    UNIT,
    UNKNOWN,
    UNKNOWN_TOKEN,
    Columns,
    UnitKind,
    Unknown,
    Vocabulary,
    utf8,
)

_NO_MERGES = np.empty((0, 3), np.int32)
_MERGERS = {"bpe": train_bpe, "bytes": train_bpe, "scaffold_bpe": train_scaffold_bpe, "wordpiece": train_wordpiece}
_KERNELS = {"bpe": BPE, "bytes": BPE, "scaffold_bpe": BPE, "wordpiece": WORDPIECE}
Integers = npt.NDArray[np.int64]
_BYTES = 256


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
    """Merged pairs whose string was a token already; see `MergeTraining`."""

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
        pieces = train_unigram(
            *corpus.words(), corpus.weights, corpus.units, size,
            longest=LONGEST[request.unit], prune=request.prune, progress=progress,
        )  # fmt: skip
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


@dataclass(frozen=True, eq=False)
class Alphabet:
    """The units a trainer numbers: bytes, or characters and then perhaps the 256 bytes that others fall back to.

    With continuation marks all of them follow a second time, as they are inside a word.
    """

    characters: Integers | None
    """Codepoints in order; None where units are bytes."""
    fallback: bool = False
    marked: bool = False

    @property
    def single(self) -> int:
        """Units without the second forms."""
        return _BYTES if self.characters is None else len(self.characters) + _BYTES * self.fallback

    @property
    def size(self) -> int:
        """All units."""
        return self.single * (1 + self.marked)

    def spell(self, units: npt.NDArray[np.int32], offsets: Integers) -> tuple[bytes, ...]:
        """The bytes of tokens given by their units. Fallback bytes are spelled where they stand alone."""
        plain = units % self.single
        if self.characters is None:
            return _cut(plain.astype(np.uint8).tobytes(), offsets)
        fallen = plain >= len(self.characters)
        codepoints = np.append(self.characters, np.zeros(_BYTES, np.int64))[plain].astype("<u4")
        lengths = 1 + (codepoints >= 0x80).astype(np.int64) + (codepoints >= 0x800) + (codepoints >= 0x10000)
        ends = np.zeros(len(units) + 1, np.int64)
        np.cumsum(lengths, out=ends[1:])
        spelled = np.frombuffer(codepoints.tobytes().decode("utf-32-le").encode("utf-8"), np.uint8).copy()
        spelled[ends[:-1][fallen]] = plain[fallen] - len(self.characters)
        return _cut(spelled.tobytes(), ends[offsets])

    def kinds(self) -> npt.NDArray[np.uint8]:
        """Kind of each unit."""
        kinds = np.full(self.single, UNIT, np.uint8)
        if self.fallback:
            kinds[-_BYTES:] = FALLBACK
        return np.tile(kinds, 1 + self.marked)


def _alphabet(words: WordCounts, request: TrainingRequest) -> tuple[Alphabet, Unknown]:
    if request.unit == "byte":
        return Alphabet(None, marked=request.continuation), "byte_fallback"
    observed = observed_characters(words)
    needed = (len(observed) + _BYTES) * (1 + request.continuation) + len(request.special_tokens)
    fits = request.vocab_size is None or request.vocab_size >= needed
    unknown = request.unknown or ("byte_fallback" if fits else "refuse")
    return Alphabet(observed, fallback=unknown == "byte_fallback", marked=request.continuation), unknown


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
    others = _BYTES * alphabet.fallback
    return SymbolCorpus.of_characters(words, alphabet.characters, others=others, marked=alphabet.marked)


@dataclass(frozen=True, eq=False)
class TrainedTokens:
    """What every trainer's result comes down to: n tokens, units first, each given by its units."""

    units: npt.NDArray[np.int32]
    offsets: Integers
    frequencies: Integers
    parents: npt.NDArray[np.int32]
    """Shape (n, 2), -1 where there are none."""
    scaffold: npt.NDArray[np.bool_]
    scores: npt.NDArray[np.float64]


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


# A token a word: the commonest pre-tokens are the vocabulary, and nothing is learned inside them.
#
# With units of their own (bytes, or characters and fallback bytes) a word outside the vocabulary is spelled in those;
# without, which `unknown=token` with character units asks for, it is one unknown token.
def common_words(words: WordCounts, size: int) -> list[tuple[bytes, int]]:
    """At most `size` pre-tokens with their counts, the commonest first, of equals the first in byte order."""
    return sorted(words, key=lambda word: (-word[1], word[0]))[: max(size, 0)]


def words_over_units(corpus: SymbolCorpus, size: int) -> TrainedTokens:
    """The units, then the commonest words of several units, up to `size` tokens."""
    symbols, offsets = corpus.words()
    spelled = [tuple(symbols[begin:end].tolist()) for begin, end in pairwise(offsets.tolist())]
    counts = zip(spelled, corpus.weights.tolist(), strict=True)
    chosen = sorted((-count, word) for word, count in counts if len(word) > 1)[: size - corpus.units]
    tokens = [*((unit,) for unit in range(corpus.units)), *(word for _, word in chosen)]
    ends = np.cumsum([0, *map(len, tokens)], dtype=np.int64)
    frequencies = np.append(corpus.frequencies, np.array([-count for count, _ in chosen], dtype=np.int64))
    return TrainedTokens(
        np.fromiter(chain.from_iterable(tokens), np.int32, int(ends[-1])),
        ends,
        frequencies,
        np.full((len(tokens), 2), -1, np.int32),
        np.zeros(len(tokens), np.bool_),
        np.zeros(len(tokens)),
    )


def word_columns(words: list[tuple[bytes, int]], special: tuple[str, ...]) -> Columns:
    """Words alone, then the unknown token, then the special ones."""
    count = len(words) + 1 + len(special)
    kinds = np.full(count, TOKEN, np.uint8)
    kinds[len(words)], kinds[len(words) + 1 :] = UNKNOWN, SPECIAL
    frequencies = np.zeros(count, np.int64)
    frequencies[: len(words)] = [number for _, number in words]
    return Columns(
        ids=np.arange(count, dtype=np.int32),
        spellings=(*(word for word, _ in words), utf8(UNKNOWN_TOKEN), *map(utf8, special)),
        frequencies=frequencies,
        parents=np.full((count, 2), -1, np.int32),
        kinds=kinds,
        continuations=np.zeros(count, np.bool_),
        scores=np.zeros(count),
    )


def columns(tokens: TrainedTokens, alphabet: Alphabet, special: Sequence[str], *, unknown: bool) -> Columns:
    """The tokens, then the unknown one if it is wanted, then the special ones; ids count those that are normal."""
    count, extra = len(tokens.scaffold), len(special) + unknown
    kinds = np.full(count + extra, TOKEN, np.uint8)
    kinds[: alphabet.size] = alphabet.kinds()
    kinds[count : count + unknown] = UNKNOWN
    kinds[count + unknown :] = SPECIAL
    ids = np.full(count + extra, -1, np.int32)
    normal = np.append(~tokens.scaffold, np.ones(extra, np.bool_))
    ids[normal] = np.arange(normal.sum(), dtype=np.int32)
    inside = tokens.units[tokens.offsets[:-1]] >= alphabet.single
    return Columns(
        ids=ids,
        spellings=(
            *alphabet.spell(tokens.units, tokens.offsets),
            *((utf8(UNKNOWN_TOKEN),) if unknown else ()),
            *map(utf8, special),
        ),
        frequencies=np.append(tokens.frequencies, np.zeros(extra, np.int64)),
        parents=np.concatenate([tokens.parents, np.full((extra, 2), -1, np.int32)]),
        kinds=kinds,
        continuations=np.append(inside, np.zeros(extra, np.bool_)),
        scores=np.append(tokens.scores, np.zeros(extra)),
    )


def _cut(spelled: bytes, offsets: Integers) -> tuple[bytes, ...]:
    return tuple([spelled[begin:end] for begin, end in pairwise(offsets.tolist())])
