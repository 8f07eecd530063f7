"""Candidate spans of a corpus: n-grams with their counts, mutual information and branching entropies.

*Entropy-Driven Pre-Tokenization for Byte-Pair Encoding*, arXiv 2506.15889. Counts are exact, overlapping occurrences
included. A longer n-gram is counted only where both (n - 1)-grams in it are frequent, so that memory follows the
frequent n-grams and never the length of the corpus.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from paribus.tokenization.pretokenize.spans.codes import CODE_BITS, LINE_END, OTHER, Codes, code_classes, decode
from paribus.tokenization.pretokenize.spans.settings import Classes, Information, SpanSettings
from paribus.tokenization.pretokenize.spans.spool import CodeSpool
from paribus.tokenization.pretokenize.spans.tally import Integers, Tally, entropies

Reals = npt.NDArray[np.float64]
Progress = Callable[[int, int], None]
"""Called with the codes read so far and those to read in all passes."""

_MASK = (1 << CODE_BITS) - 1
_DECIMALS = 9
"""Scores are rounded so that the last bits of a logarithm, which differ between processors, decide nothing."""


@dataclass(frozen=True)
class Ngrams:
    """The candidates of one length, in the order of their keys; arrays of shape (n,)."""

    length: int
    keys: Integers
    """Index of the candidate without its last character (its code where that is one character), then that character's
    code in the low `CODE_BITS`; ascending."""
    codes: Codes
    """Their codepoints, shape (n, length)."""
    counts: Integers
    information: Reals
    """The smallest pointwise mutual information (bits) of two adjacent characters."""
    left_entropy: Reals
    right_entropy: Reals
    """Shannon entropy (bits) of the characters before and after; a line end is a symbol like any other."""

    @cached_property
    def strings(self) -> list[str]:
        """The candidates as text."""
        return decode(self.codes)

    def scores(self, settings: SpanSettings) -> Reals:
        """min PMI + lambda * min(H_left, H_right), or the second term without lambda."""
        scores: Reals = np.minimum(self.left_entropy, self.right_entropy)
        if not settings.entropy_only:
            scores = self.information + settings.entropy_weight * scores
        return np.round(scores, _DECIMALS)


def candidate_ngrams(
    texts: Iterable[str],
    *,
    max_length: int = 4,
    min_count: int = 2,
    information: Information = "shares",
    classes: Classes = "one",
    progress: Progress | None = None,
) -> list[Ngrams]:
    """The candidates of `texts` of each length from 2 to `max_length`.

    PMI(x, y) = log2(p(xy) / (p(x) p(y))), with p(x) over all characters and p(xy) over all adjacent positions inside
    lines; of `counts` the same without the totals. `texts` is read once. Raises ConfigurationError for a length below
    2, a count below 1 and names that are none.
    """
    settings = SpanSettings(max_length=max_length, min_count=min_count, information=information, classes=classes)
    with CodeSpool(texts) as spool:
        search = _Search(spool, settings, progress)
        return search.ngrams()


class _Search:
    """One pass for the characters, one for each length, one for the neighbours."""

    def __init__(self, spool: CodeSpool, settings: SpanSettings, progress: Progress | None) -> None:
        self._spool, self._max_length, self._min_count = spool, settings.max_length, settings.min_count
        self._totals, self._progress = settings.information == "shares", progress
        self._read = 0
        self._characters = np.zeros(1 << CODE_BITS, dtype=np.int64)
        self._pairs = 0
        self._count_characters()
        self._classes = code_classes(np.flatnonzero(self._characters), alike=settings.classes == "any")
        self._keys: list[Integers] = []
        self._counts: list[Integers] = []
        for length in range(2, settings.max_length + 1):
            self._count(length)

    def ngrams(self) -> list[Ngrams]:
        sides = self._branching()
        found: list[Ngrams] = []
        for level, (keys, counts) in enumerate(zip(self._keys, self._counts, strict=True)):
            if level == 0:
                codes = np.stack([keys >> CODE_BITS, keys & _MASK], axis=1).astype(np.uint32)
                information = pair_information = self._pair_information()
            else:
                prefix, last = keys >> CODE_BITS, (keys & _MASK).astype(np.uint32)
                codes = np.concatenate([found[-1].codes[prefix], last[:, None]], axis=1)
                pairs = codes[:, -2].astype(np.int64) << CODE_BITS | codes[:, -1]
                suffix = pair_information[np.searchsorted(self._keys[0], pairs)]
                information = np.minimum(found[-1].information[prefix], suffix)
            found.append(Ngrams(level + 2, keys, codes, counts, information, *sides[level]))
        return found

    def _windows(self) -> Iterator[Codes]:
        passes = self._max_length + 1
        for window in self._spool.windows(self._max_length):
            yield window
            self._read += len(window) - 1 - self._max_length
            if self._progress is not None:
                self._progress(self._read, passes * (self._spool.size - 1))

    def _count_characters(self) -> None:
        for window in self._windows():
            codes = window[1 : -self._max_length]
            self._characters += np.bincount(codes, minlength=1 << CODE_BITS)
            inside = window[: -self._max_length] != LINE_END
            self._pairs += int(np.count_nonzero(inside[1:] & inside[:-1]))
        self._characters[LINE_END] = 0

    def _count(self, length: int) -> None:
        tally = Tally()
        for window in self._windows():
            ids, within = self._levels(window, length - 1)[-1]
            suffix = np.append(ids[1:] >= 0, True)
            places = np.flatnonzero((ids >= 0) & suffix & self._joined(window, within, length))
            tally.add(_extended(ids, window, places, length))
        keys, counts = tally.counts()
        frequent = counts >= self._min_count
        self._keys.append(keys[frequent])
        self._counts.append(counts[frequent])

    def _branching(self) -> list[tuple[Reals, Reals]]:
        tallies = [(Tally(), Tally()) for _ in self._keys]
        for window in self._windows():
            for level, (ids, _) in enumerate(self._levels(window, self._max_length)[1:]):
                places = np.flatnonzero(ids >= 0)
                left, right = tallies[level]
                left.add(ids[places] << CODE_BITS | window[places])
                right.add(_extended(ids, window, places, level + 3))
        return [
            (
                entropies(*left.counts(), groups=len(keys), bits=CODE_BITS),
                entropies(*right.counts(), groups=len(keys), bits=CODE_BITS),
            )
            for keys, (left, right) in zip(self._keys, tallies, strict=True)
        ]

    def _pair_information(self) -> Reals:
        keys, counts = self._keys[0], self._counts[0]
        total = int(self._characters.sum())
        scale = total * total / max(self._pairs, 1) if self._totals else 1.0
        single = self._characters[keys >> CODE_BITS] * self._characters[keys & _MASK].astype(np.float64)
        information: Reals = np.log2(counts / single * scale)
        return information

    def _levels(self, window: Codes, length: int) -> list[tuple[Integers, npt.NDArray[np.bool_]]]:
        """Of each length from 1: which candidate begins at each place (-1: none), and whether its span has one class.

        A candidate of length 1 is any character, by its code.
        """
        places = len(window) - 1 - self._max_length
        ids = window[1 : 1 + places].astype(np.int64)
        within = self._classes[ids] != OTHER
        levels = [(ids, within)]
        for level in range(2, length + 1):
            within = self._joined(window, within, level)
            at = np.flatnonzero((ids >= 0) & within)
            found = _indices(self._keys[level - 2], _extended(ids, window, at, level))
            ids = np.full(places, -1, dtype=np.int64)
            ids[at] = found
            levels.append((ids, within))
        return levels

    def _joined(self, window: Codes, within: npt.NDArray[np.bool_], length: int) -> npt.NDArray[np.bool_]:
        """Whether the span of `length` at each place has one class, given that for the span without its last."""
        classes = self._classes[window[length - 1 : length + 1 + len(within) - 1]]
        joined: npt.NDArray[np.bool_] = within & (classes[1:] == classes[:-1])
        return joined


def _extended(ids: Integers, window: Codes, places: Integers, length: int) -> Integers:
    """Keys of the n-grams of `length` that begin at `places` with the candidates `ids`."""
    keys: Integers = ids[places] << CODE_BITS | window[places + length]
    return keys


def _indices(table: Integers, keys: Integers) -> Integers:
    """Index of each key in the ascending table, -1 where it is not there."""
    if not len(table):
        return np.full(len(keys), -1, dtype=np.int64)
    at = np.minimum(np.searchsorted(table, keys), len(table) - 1)
    return np.where(table[at] == keys, at, -1)
