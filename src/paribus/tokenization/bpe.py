"""Byte-pair encoding: merge the most frequent pair of adjacent tokens until the vocabulary is full.

Sennrich et al., *Neural Machine Translation of Rare Words with Subword Units*, Algorithm 1. Counts are exact,
overlaps included; ties go to the smaller left rank, then the smaller right rank (the rule of Hugging Face's
`BpeTrainer`, whose merge list on the same pre-tokens is the same).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from paribus.tokenization.lazy_queue import LazyQueue
from paribus.tokenization.symbol_corpus import SymbolCorpus, split_key

Stopped = Literal["vocab_size", "no_pair_left"]
Progress = Callable[[int], None]


@dataclass(frozen=True)
class Training:
    """What training made. Tokens are unit strings in order of creation; a token's index is its rank."""

    tokens: tuple[str, ...]
    frequencies: tuple[int, ...]
    """Occurrences when the token was made, after replacing left to right."""
    parents: tuple[tuple[int, int] | None, ...]
    scaffold: tuple[bool, ...]
    merges: tuple[tuple[int, int, int], ...]
    """(left, right, result) ranks in training order; longer than the tokens where two pairs spell one string."""
    stopped: Stopped
    string_equal_pairs: int
    """Merged pairs whose string was a token already. Zero for an alphabet of single units: as every merge replaces
    all occurrences of its pair, a string whose ends no merge crosses is always built up the same way."""


class BPETrainer:
    """Trains on `words` (unit string -> count) from an `alphabet` of units in rank order."""

    def __init__(self, words: Mapping[str, int], alphabet: Sequence[str]) -> None:
        self.units = len(alphabet)
        self.tokens = list(alphabet)
        self.normal = self.units
        """Tokens that count towards the vocabulary size."""
        self.parents: list[tuple[int, int] | None] = [None] * self.units
        self.scaffold = [False] * self.units
        self.merges: dict[tuple[int, int], int] = {}
        self.queue = LazyQueue()
        self._ranks = {token: rank for rank, token in enumerate(alphabet)}
        self._corpus = SymbolCorpus(words, self._ranks)
        self.frequencies = self._corpus.unit_counts(self.units)
        self.live = list(self.frequencies)
        """Occurrences in the corpus as it now stands, by rank."""
        self._string_equal_pairs = 0
        self.queue.add(self._corpus.pair_counts())

    def train(self, size: int, progress: Progress | None = None) -> Training:
        """Learn until `size` tokens (units included) count towards the vocabulary, or no pair is left."""
        while self.normal < size and (head := self.queue.head()) is not None:
            self.step(head[0])
            if progress is not None:
                progress(self.normal)
        return Training(
            tokens=tuple(self.tokens),
            frequencies=tuple(self.frequencies),
            parents=tuple(self.parents),
            scaffold=tuple(self.scaffold),
            merges=tuple((left, right, result) for (left, right), result in self.merges.items()),
            stopped="vocab_size" if self.normal >= size else "no_pair_left",
            string_equal_pairs=self._string_equal_pairs,
        )

    def step(self, key: int) -> None:
        """Handle the head of the queue."""
        self.merge(*split_key(key))

    def merge(self, left: int, right: int) -> int:
        """Merge a pair everywhere and return the rank of its token."""
        token = self._token(left, right)
        count, changes = self._corpus.replace(left, right, token)
        self.queue.add(changes)
        if token == len(self.frequencies):
            self.frequencies.append(count)
            self.live.append(0)
        self.live[token] += count
        self.live[left] -= count
        self.live[right] -= count
        return token

    def _token(self, left: int, right: int) -> int:
        string = self.tokens[left] + self.tokens[right]
        known = self._ranks.get(string)
        if known is not None:
            self._string_equal_pairs += 1
            self.merges.setdefault((left, right), known)
            return known
        token = self._ranks[string] = self.merges[left, right] = len(self.tokens)
        self.tokens.append(string)
        self.parents.append((left, right))
        self.scaffold.append(False)
        self.normal += 1
        return token
