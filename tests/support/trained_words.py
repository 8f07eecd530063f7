"""Training on words given as strings."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from paribus.tokenization.counts import WordCounts
from paribus.tokenization.unigram import UnigramTraining, train_unigram


def word_counts(words: Mapping[str, int]) -> WordCounts:
    """Counts by pre-token; the empty one is left out."""
    spelled = {word.encode(): count for word, count in words.items() if word}
    offsets = np.cumsum([0, *map(len, spelled)], dtype=np.int64)
    counts = np.fromiter(spelled.values(), np.int64, len(spelled))
    return WordCounts(np.frombuffer(b"".join(spelled), np.uint8), offsets, counts)


def strings(training: UnigramTraining, alphabet: Sequence[str]) -> tuple[str, ...]:
    """The pieces as unit strings over `alphabet`."""
    return tuple("".join(map(alphabet.__getitem__, token)) for token in training.tokens)


def train_on_words(words: Mapping[str, int], alphabet: Sequence[str], size: int, **options: Any) -> UnigramTraining:
    """Train on `words` (unit string -> count) over `alphabet`."""
    places = {unit: place for place, unit in enumerate(alphabet)}
    units = np.array([places[unit] for word in words for unit in word], np.int32)
    offsets = np.cumsum([0, *map(len, words)], dtype=np.int64)
    return train_unigram(units, offsets, np.array([*words.values()], np.int64), len(alphabet), size, **options)
