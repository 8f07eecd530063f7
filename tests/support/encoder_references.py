"""Slow, obvious versions of the encoders, for comparison.

Units are a string or a tuple of unit indices; tokens are slices of them. Nothing here is shared with the library.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import TypeVar

Units = TypeVar("Units", str, tuple[int, ...])

_BITS = (1 << 64) - 1


def _single(units: Units) -> list[Units]:
    return [units[index : index + 1] for index in range(len(units))]


def merge_rank(units: Units, merges: Sequence[tuple[Units, Units]]) -> list[Units]:
    """Apply the earliest-learned applicable merge at its leftmost place, until none applies."""
    pieces = _single(units)
    while options := applicable(pieces, merges):
        _, position = min(options)
        pieces[position : position + 2] = [pieces[position] + pieces[position + 1]]
    return pieces


def applicable(pieces: Sequence[Units], merges: Sequence[tuple[Units, Units]]) -> list[tuple[int, int]]:
    """(rank of the merge, position) of each adjacent pair that can be merged, from the left."""
    return [(merges.index(pair), position) for position, pair in enumerate(pairwise(pieces)) if pair in merges]


def longest_first(units: Units, vocabulary: Collection[Units]) -> list[Units]:
    """LBPE, Algorithm 1, as it is written."""
    size = len(units)
    marked, spans = [False] * size, []
    for length in range(max(map(len, vocabulary), default=1), 0, -1):
        for start in range(size - length + 1):
            if units[start : start + length] in vocabulary and not any(marked[start : start + length]):
                marked[start : start + length] = [True] * length
                spans.append((start, start + length))
    return [units[start:end] for start, end in sorted(spans)]


def left_to_right(units: Units, vocabulary: Collection[Units]) -> list[Units] | None:
    """WordPiece: the longest token that begins here, then the same after it; None where no token begins."""
    pieces, start = [], 0
    while start < len(units):
        ends = [end for end in range(start + 1, len(units) + 1) if units[start:end] in vocabulary]
        if not ends:
            return None
        pieces.append(units[start : max(ends)])
        start = max(ends)
    return pieces


def viterbi(units: Units, scores: Mapping[Units, float]) -> list[Units] | None:
    """The segmentation of largest summed score; None where there is none.

    The sum is score(first) + best(rest), rounded at each addition from the end on. Of equal sums the one with fewer
    tokens is taken, then the one whose first token is longer; the rest is decided already.
    """

    @cache
    def best(start: int) -> tuple[float, int, int] | None:
        """(sum, -tokens, length of the first token) from `start` on."""
        if start == len(units):
            return 0.0, 0, 0
        options = []
        for end in range(start + 1, len(units) + 1):
            rest = best(end) if units[start:end] in scores else None
            if rest is not None:
                options.append((scores[units[start:end]] + rest[0], rest[1] - 1, end - start))
        return max(options, default=None)

    pieces, start = [], 0
    for later in range(len(units), -1, -1):
        best(later)
    while start < len(units):
        found = best(start)
        if found is None:
            return None
        pieces.append(units[start : start + found[2]])
        start += found[2]
    return pieces


def fewest(units: Units, vocabulary: Collection[Units]) -> list[Units] | None:
    """The segmentation into fewest tokens, of these the one with the longest first token, then second, ..."""
    return viterbi(units, dict.fromkeys(vocabulary, 0.0))


def dropout(units: Units, merges: Sequence[tuple[Units, Units]], probability: float, stream: int) -> list[Units]:
    """BPE-dropout (Provilkov et al. 2020, Algorithm 1): merge rank, but each step forgets some of its options.

    At every step the applicable merges, in order of rank, then position, draw the next number of the stream each, until
    one is not skipped, which happens with `probability`; that one is applied; where all are skipped the word is done.
    The n-th draw (from 0) of a word is splitmix64(stream + n), of which the upper 32 bits are compared.
    """
    pieces = _single(units)
    drawn = 0
    while True:
        for _, position in sorted(applicable(pieces, merges)):
            drawn += 1
            if splitmix64(stream + drawn - 1 & _BITS) >> 32 >= round(probability * 2**32):
                pieces[position : position + 2] = [pieces[position] + pieces[position + 1]]
                break
        else:
            return pieces


def splitmix64(counter: int) -> int:
    """The output of Steele, Lea and Flood's generator at a state, 64 bits."""
    value = (counter + 0x9E3779B97F4A7C15) & _BITS
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & _BITS
    value = (value ^ value >> 27) * 0x94D049BB133111EB & _BITS
    return value ^ value >> 31


def pretoken_stream(seed: int, document: int, pretoken: int) -> int:
    """The stream of the n-th pre-token (from 0) of a document with this 64-bit hash: no thread or order is in it."""
    return splitmix64((splitmix64(seed ^ document) + pretoken) & _BITS)
