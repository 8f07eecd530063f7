"""The substrings that Unigram training starts from: those that cover most of the corpus.

`sentencepiece` finds them with a suffix array of the corpus, whose memory is many times the corpus. Here they are
counted over distinct pre-tokens, weighted by how often each occurs, one length after the other: the same counts, in
memory that the word table bounds.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

_FEWEST = 2
"""Occurrences that a seed needs."""

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class _Level:
    """All substrings of one length that occur at least twice; `best` counts the commonest one longer on either side."""

    starts: Integers
    counts: Integers
    best: Integers


def seed_pieces(words: Sequence[str], counts: Sequence[int], longest: int, limit: int) -> list[tuple[str, int]]:
    """Substrings of 2 to `longest` characters of distinct `words` with their counts, at most `limit`.

    A substring that one character always follows, or precedes, is left out for the longer one.
    The rest is ordered by count times length, the seeds' score in Kudo (2018), then by string.
    """
    text = "".join(words)
    starts, lengths, occurrences = _levels(text, words, counts, longest)
    score = occurrences * lengths
    kept = np.flatnonzero(score >= _threshold(score, limit)).tolist()
    seeds = [(-int(score[i]), text[starts[i] : starts[i] + lengths[i]], int(occurrences[i])) for i in kept]
    return [(piece, count) for _, piece, count in sorted(seeds)[:limit]]


def _threshold(score: Integers, limit: int) -> int:
    if len(score) <= limit:
        return 0
    return int(np.partition(score, len(score) - limit)[len(score) - limit])


def _levels(text: str, words: Sequence[str], counts: Sequence[int], longest: int) -> tuple[Integers, ...]:
    """Starts, lengths and counts of all seeds, shorter ones first."""
    found: list[tuple[Integers, ...]] = []
    for length, level in enumerate(_substrings(text, words, counts, longest), start=1):
        chosen = level.counts > level.best
        if length > 1:
            found.append((level.starts[chosen], np.full(int(chosen.sum()), length), level.counts[chosen]))
    if not found:
        return (np.zeros(0, np.int64),) * 3
    return tuple(np.concatenate(column) for column in zip(*found, strict=True))


def _substrings(text: str, words: Sequence[str], counts: Sequence[int], longest: int) -> Iterator[_Level]:
    lengths = np.fromiter(map(len, words), np.int64, len(words))
    units = _dense(np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32))
    alphabet = int(units.max(initial=0)) + 1
    positions = np.arange(len(units))
    ends = np.repeat(np.cumsum(lengths), lengths)
    weights = np.repeat(np.fromiter(counts, np.int64, len(words)), lengths)
    keys, place = units, np.full(len(units) + 1, -1)
    level: _Level | None = None
    for length in range(1, longest + 1):
        distinct, first, groups = np.unique(keys, return_index=True, return_inverse=True)
        totals = _sums(groups, weights, len(distinct))
        if level is not None:
            np.maximum.at(level.best, distinct // alphabet, totals)
            np.maximum.at(level.best, place[positions[first] + 1], totals)
            yield level
        often = totals >= _FEWEST
        number = np.cumsum(often) - 1
        level = _Level(positions[first[often]], totals[often], np.zeros(int(often.sum()), np.int64))
        place[positions] = np.where(often[groups], number[groups], -1)
        going_on = often[groups] & (positions + length < ends)
        groups, positions = number[groups[going_on]], positions[going_on]
        ends, weights = ends[going_on], weights[going_on]
        if not len(positions):
            break
        keys = groups * alphabet + units[positions + length]
    if level is not None:
        yield level


def _dense(codepoints: npt.NDArray[np.uint32]) -> Integers:
    return np.unique(codepoints, return_inverse=True)[1].astype(np.int64)


def _sums(groups: Integers, weights: Integers, size: int) -> Integers:
    """Sums of `weights` by group, exact (`np.bincount` adds in float64)."""
    order = np.argsort(groups, kind="stable")
    totals = np.concatenate([[0], np.cumsum(weights[order])])
    ends = np.searchsorted(groups[order], np.arange(size), side="right")
    return np.diff(np.concatenate([[0], totals[ends]]))
