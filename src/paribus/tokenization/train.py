"""Training of a vocabulary: count pre-tokens, choose the alphabet, train, number the tokens."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np
import numpy.typing as npt

from paribus.errors import ConfigurationError
from paribus.native.registry import BPE, COUNTING, TABLES, UNITS, WORDPIECE
from paribus.tokenization.bpe import Progress, Stopped, train_bpe, train_scaffold_bpe, train_wordpiece
from paribus.tokenization.counts import SymbolCorpus, WordCounts, count_words, observed_characters
from paribus.tokenization.kernels import layout
from paribus.tokenization.pretokenize import PatternPretokenizer, Pretokenizer, class_table
from paribus.tokenization.settings import Algorithm
from paribus.tokenization.unigram import LONGEST, PRUNE, train_unigram
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


@dataclass(frozen=True, kw_only=True)
class TrainingRequest:
    """Request for a vocabulary; `unknown=None` is byte fallback where `vocab_size` has room for it, else refusal."""

    algorithm: Algorithm
    vocab_size: int | None
    unit: UnitKind
    unknown: Unknown | None
    special_tokens: tuple[str, ...]
    prune: float = PRUNE
    """Share of the tokens that a round of Unigram removes."""
    continuation: bool = False
    """True if a unit inside a word differs from the same unit at its start."""


@dataclass(frozen=True, eq=False)
class TrainedVocabulary:
    """A vocabulary, how unknown characters are treated, and what training reported."""

    vocabulary: Vocabulary
    unknown: Unknown
    stopped: Stopped


def training_kernels(algorithm: Algorithm) -> list[str]:
    """Names of the kernels that training by `algorithm` runs, from counting to the tables of the tokenizer."""
    return [*COUNTING, *UNITS, *_KERNELS.get(algorithm, ()), *TABLES]


def count_pretokens(
    texts: Iterable[str], pretokenizer: PatternPretokenizer | Pretokenizer, *, threads: int = 1
) -> WordCounts:
    """Occurrences of each pre-token in `texts`; the same for any number of threads."""
    if isinstance(pretokenizer, PatternPretokenizer):
        name = pretokenizer.name
        return count_words(texts, layout.PATTERNS.index(name), class_table(name), threads=threads)
    pieces = (piece for text in texts for piece in pretokenizer.pieces(text))
    return count_words(pieces, layout.NONE, class_table(), threads=threads)


def train_vocabulary(
    words: WordCounts, request: TrainingRequest, progress: Progress | None = None
) -> TrainedVocabulary:
    """Train on pre-token counts. Raises ConfigurationError for a size below the alphabet and special tokens."""
    if request.algorithm == "words" and request.unit == "character" and request.unknown == "token":
        return _train_on_whole_words(words, request)
    alphabet, unknown = _alphabet(words, request)
    extra = len(request.special_tokens) + (unknown == "token")
    size = _size(request, alphabet, extra, unknown)
    if alphabet.characters is None:
        corpus = SymbolCorpus.of_bytes(words, marked=alphabet.marked)
    else:
        fallback_units = _BYTES * alphabet.fallback
        corpus = SymbolCorpus.of_characters(words, alphabet.characters, others=fallback_units, marked=alphabet.marked)
    stopped: Stopped
    merges = _NO_MERGES
    if request.algorithm == "unigram":
        pieces = train_unigram(
            *corpus.words(), corpus.weights, corpus.units, size,
            longest=LONGEST[request.unit], prune=request.prune, progress=progress,
        )  # fmt: skip
        frequencies = np.append(corpus.frequencies, np.zeros(len(pieces.tokens) - corpus.units, np.int64))
        tokens, stopped = _unmerged_tokens(pieces.tokens, frequencies, pieces.scores), pieces.stopped
    elif request.algorithm == "words":
        tokens = _words_over_units(corpus, size)
        stopped = "vocab_size" if len(tokens.scaffold) == size else "no_pair_left"
    else:
        training = _MERGERS[request.algorithm](corpus, size, progress)
        stopped, merges, parents = training.stopped, training.merges, np.column_stack([training.left, training.right])
        scores = np.zeros(len(parents))
        tokens = TrainedTokens(*training.unit_sequences(), training.frequencies, parents, training.scaffold, scores)
    columns = _columns(tokens, alphabet, request.special_tokens, unknown=unknown == "token")
    return TrainedVocabulary(Vocabulary(columns, merges, request.unit), unknown, stopped)


@dataclass(frozen=True, eq=False)
class Alphabet:
    """The units that a trainer numbers: bytes, or characters and, with `fallback`, the 256 bytes of all others.

    If `marked`, all of them follow a second time, for the inside of a word.
    """

    characters: Integers | None
    """Codepoints in order; None where units are bytes."""
    fallback: bool = False
    marked: bool = False

    @property
    def single(self) -> int:
        """Number of units, second forms left out."""
        return _BYTES if self.characters is None else len(self.characters) + _BYTES * self.fallback

    @property
    def size(self) -> int:
        """Number of units, second forms included."""
        return self.single * (1 + self.marked)

    def spell(self, units: npt.NDArray[np.int32], offsets: Integers) -> tuple[bytes, ...]:
        """The bytes of tokens given by their units; a fallback unit is spelled as its byte."""
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
    """Tokens to train, without the `extra` ones: special tokens and the unknown one."""
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


@dataclass(frozen=True, eq=False)
class TrainedTokens:
    """Result of every trainer: n tokens, units first, each given by its units."""

    units: npt.NDArray[np.int32]
    offsets: Integers
    frequencies: Integers
    parents: npt.NDArray[np.int32]
    """Shape (n, 2), -1 where there are none."""
    scaffold: npt.NDArray[np.bool_]
    scores: npt.NDArray[np.float64]


def _unmerged_tokens(
    tokens: Sequence[tuple[int, ...]], frequencies: Integers, scores: npt.NDArray[np.float64]
) -> TrainedTokens:
    """Tokens that no merge made, given by their units."""
    return TrainedTokens(
        np.fromiter(chain.from_iterable(tokens), np.int32),
        np.cumsum([0, *map(len, tokens)], dtype=np.int64),
        frequencies,
        np.full((len(tokens), 2), -1, np.int32),
        np.zeros(len(tokens), np.bool_),
        scores,
    )


# One token per word: the commonest pre-tokens are the vocabulary, and nothing is learned inside them.
#
# If units (bytes, or characters and fallback bytes) are tokens too, a word outside the vocabulary is spelled in units.
# With character units and `unknown=token` they are not, and such a word is one unknown token.
def _words_over_units(corpus: SymbolCorpus, size: int) -> TrainedTokens:
    """The units, then the commonest words of several units, up to `size` tokens."""
    symbols, offsets = corpus.words()
    spelled = [tuple(symbols[begin:end].tolist()) for begin, end in pairwise(offsets.tolist())]
    counts = zip(spelled, corpus.weights.tolist(), strict=True)
    chosen = sorted((-count, word) for word, count in counts if len(word) > 1)[: size - corpus.units]
    tokens = [*((unit,) for unit in range(corpus.units)), *(word for _, word in chosen)]
    frequencies = np.append(corpus.frequencies, np.array([-count for count, _ in chosen], dtype=np.int64))
    return _unmerged_tokens(tokens, frequencies, np.zeros(len(tokens)))


def _train_on_whole_words(words: WordCounts, request: TrainingRequest) -> TrainedVocabulary:
    """Vocabulary of the commonest words (ties in byte order), then the unknown token, then the special ones."""
    special = request.special_tokens
    if request.vocab_size is None or request.vocab_size <= len(special) + 1:
        raise ConfigurationError(
            f"tokenizer.vocab_size: {request.vocab_size} leaves no room for words beside the unknown token and "
            f"{len(special)} special tokens"
        )
    size = request.vocab_size - len(special) - 1
    chosen = sorted(words, key=lambda word: (-word[1], word[0]))[:size]
    count = len(chosen) + 1 + len(special)
    kinds = np.full(count, TOKEN, np.uint8)
    kinds[len(chosen)], kinds[len(chosen) + 1 :] = UNKNOWN, SPECIAL
    frequencies = np.zeros(count, np.int64)
    frequencies[: len(chosen)] = [number for _, number in chosen]
    columns = Columns(
        ids=np.arange(count, dtype=np.int32),
        spellings=(*(word for word, _ in chosen), utf8(UNKNOWN_TOKEN), *map(utf8, special)),
        frequencies=frequencies,
        parents=np.full((count, 2), -1, np.int32),
        kinds=kinds,
        continuations=np.zeros(count, np.bool_),
        scores=np.zeros(count),
    )
    stopped: Stopped = "vocab_size" if len(chosen) == size else "no_pair_left"
    return TrainedVocabulary(Vocabulary(columns, _NO_MERGES, request.unit), "token", stopped)


def _columns(tokens: TrainedTokens, alphabet: Alphabet, special: Sequence[str], *, unknown: bool) -> Columns:
    """The tokens, then the unknown one if `unknown`, then the special ones; scaffolds have no id."""
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
