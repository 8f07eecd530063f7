"""Distinct pre-tokens as units with separators between them, the form in which the trainers read a corpus."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from paribus.native.loader import address, kernel
from paribus.tokenization.learn.word_counts import WordCounts

_CODEPOINTS = 0x110000
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SymbolCorpus:
    """Units are numbered from 0. With continuation marks, unit u inside a word is `units // 2 + u`."""

    symbols: npt.NDArray[np.int32]
    """Units of each word in order, -1 before, between and after words; int32."""
    weights: Integers
    """Count of each word."""
    units: int
    """Size of the alphabet, continuation forms and units that do not occur included."""
    frequencies: Integers
    """Occurrences of each unit, shape (units,)."""

    @classmethod
    def of_bytes(cls, words: WordCounts, *, marked: bool = False) -> "SymbolCorpus":
        """Bytes as units; `marked` tells those inside a word from those that begin one."""
        corpus = cls._empty(words, len(words.spellings), 256, marked)
        kernel("lay_out_bytes")(*corpus._arguments(words), 256 * marked, *corpus._results())
        return corpus

    @classmethod
    def of_characters(
        cls, words: WordCounts, alphabet: Integers, *, others: int = 0, marked: bool = False
    ) -> "SymbolCorpus":
        """Characters as units in the order of `alphabet`, codepoints that include all of `words`; `others` units that
        do not occur follow."""
        single = len(alphabet) + others
        count, _ = _observe(words)
        ranks = np.full(_CODEPOINTS, -1, np.int32)
        ranks[alphabet] = np.arange(len(alphabet), dtype=np.int32)
        corpus = cls._empty(words, count, single, marked)
        kernel("lay_out_characters")(*corpus._arguments(words), address(ranks), single * marked, *corpus._results())
        return corpus

    def words(self) -> tuple[npt.NDArray[np.int32], Integers]:
        """Units without separators, and where each word begins (n + 1)."""
        inside = self.symbols >= 0
        bounds = np.flatnonzero(~inside)
        return self.symbols[inside], bounds - np.arange(len(bounds))

    @classmethod
    def _empty(cls, words: WordCounts, count: int, single: int, marked: bool) -> "SymbolCorpus":
        units = single * (1 + marked)
        symbols = np.empty(count + len(words) + 1, np.int32)
        return cls(symbols, np.ascontiguousarray(words.counts), units, np.zeros(units, np.int64))

    def _arguments(self, words: WordCounts) -> tuple[int, int, int, int]:
        return address(words.spellings), address(words.offsets), len(words), address(self.weights)

    def _results(self) -> tuple[int, int]:
        return address(self.symbols), address(self.frequencies)


def observed_characters(words: WordCounts) -> Integers:
    """Codepoints of the characters of all words, in order."""
    return np.flatnonzero(_observe(words)[1])


def _observe(words: WordCounts) -> tuple[int, npt.NDArray[np.uint8]]:
    """How many characters all words have, and 1 for each codepoint among them."""
    seen = np.zeros(_CODEPOINTS, np.uint8)
    return kernel("observe_characters")(address(words.spellings), len(words.spellings), address(seen)), seen
