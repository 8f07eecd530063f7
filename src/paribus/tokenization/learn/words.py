"""A token a word: the commonest pre-tokens are the vocabulary, and nothing is learned inside them.

With units of their own (bytes, or characters and fallback bytes) a word outside the vocabulary is spelled in those;
without, which `unknown=token` with character units asks for, it is one unknown token.
"""

from itertools import chain, pairwise

import numpy as np

from paribus.tokenization.learn.symbol_corpus import SymbolCorpus
from paribus.tokenization.learn.token_columns import TrainedTokens
from paribus.tokenization.learn.word_counts import WordCounts
from paribus.tokenization.vocabulary.units import UNKNOWN_TOKEN, utf8
from paribus.tokenization.vocabulary.vocabulary import SPECIAL, TOKEN, UNKNOWN, Columns


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
