"""Answers by row and item, and the order of items by how far rows differ in them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from paribus.reporting.items.scored import ROUNDING, Scored
from paribus.reporting.significance.items import Vector
from paribus.reporting.table.comparison import Comparison, ComparisonRow
from paribus.reporting.table.scores import Block, RunScores

_MOST = 1e12
"""Of a difference that is told from others; infinite ones are no further."""


@dataclass(frozen=True)
class RowAnswers:
    """Of one row, arrays (items,): what its runs answered at the checkpoints and shots that are looked at."""

    answers: NDArray[np.int64]
    value: Vector
    """Mean of the measure, of documents bits a byte; NaN where there is no answer."""
    bits: Vector
    """Mean bits of the right answer; NaN where that is not on record."""

    @property
    def right(self) -> NDArray[np.int64]:
        """How many of the answers are right, of what is right or wrong."""
        return np.rint(np.nan_to_num(self.value) * self.answers).astype(np.int64)


@dataclass(frozen=True)
class Answers:
    """Of all rows that have runs, the same items."""

    items: tuple[str, ...]
    rows: Mapping[int, RowAnswers]
    """By place in the table."""


def answers_of(scored: Scored, comparison: Comparison, scores: Mapping[str, RunScores]) -> Answers:
    """What each row answered; `scores` by run id, those of items that the table leaves out too."""
    if scored.kind == "documents":
        return _of_documents(scored, comparison, scores)
    lists = {block.items for score in scores.values() for key, block in score.blocks.items() if key[0] == scored.name}
    items = tuple(sorted({item for names in lists for item in names}, key=_in_order))
    places = _Places(items)
    rows = {place: _row(scored, row, scores, places) for place, row in enumerate(comparison.rows) if row.runs}
    return Answers(items, rows)


def _in_order(item: str) -> tuple[str, int, str]:
    """`test/2` before `test/10`."""
    head, _, number = item.rpartition("/")
    return (head, int(number), "") if number.isascii() and number.isdecimal() and len(number) < 19 else (item, 0, item)


class _Places:
    """Where the items of a block stand among all; blocks mostly have the same."""

    def __init__(self, items: Sequence[str]) -> None:
        self.count = len(items)
        self._of = {item: place for place, item in enumerate(items)}
        self._known: dict[tuple[str, ...], NDArray[np.int64]] = {}

    def of(self, block: Block) -> NDArray[np.int64]:
        """(items of the block,)."""
        if block.items not in self._known:
            self._known[block.items] = np.array([self._of[item] for item in block.items], dtype=np.int64)
        return self._known[block.items]


def _row(scored: Scored, row: ComparisonRow, scores: Mapping[str, RunScores], places: _Places) -> RowAnswers:
    (part,) = scored.column.parts
    found = [scores[run.run_id] for run in row.runs if run.run_id in scores]
    judged = [(scored.name, shots, part.scored) for shots in scored.shots]
    count, value = _summed(found, judged, places)
    keys = [(scored.name, shots, scored.bits) for shots in scored.shots] if scored.bits else []
    told, bits = _summed(found, keys, places)
    return RowAnswers(count, _divided(value, count), _divided(bits, told))


def _summed(
    found: Sequence[RunScores], keys: Sequence[tuple[str, int, str]], places: _Places
) -> tuple[NDArray[np.int64], Vector]:
    """(items,) how many values there are, and their sum."""
    count, total = np.zeros(places.count, np.int64), np.zeros(places.count)
    for block in (scores.blocks[key] for scores in found for key in keys if key in scores.blocks):
        count[places.of(block)] += len(block.values)
        total[places.of(block)] += block.values.sum(axis=0)
    return count, total


def _divided(total: Vector, count: NDArray[np.int64]) -> Vector:
    mean: Vector = np.divide(total, count, out=np.full(len(total), np.nan), where=count > 0)
    return mean


def _of_documents(scored: Scored, comparison: Comparison, scores: Mapping[str, RunScores]) -> Answers:
    known = [documents for score in scores.values() if (documents := scored.documents(score)) is not None]
    names, sizes = known[0].documents, known[0].bytes
    rows: dict[int, RowAnswers] = {}
    for place, row in enumerate(comparison.rows):
        found = [scored.documents(scores[run.run_id]) for run in row.runs if run.run_id in scores]
        bits = [each.bits for each in found if each is not None]
        if bits:
            count = sum(len(each) for each in bits)
            mean = np.sum([each.sum(axis=0) for each in bits], axis=0) / count
            counts = np.full(len(names), count, np.int64)
            rows[place] = RowAnswers(counts, mean / np.maximum(sizes, 1), np.full(len(names), np.nan))
    return Answers(names, rows)


def by_difference(scored: Scored, comparison: Comparison, answers: Answers) -> list[int]:
    """Places of all items, those in which rows differ most from what they are compared with first.

    By the measure, then by the bits of the right answer. Where nothing is compared those that were answered worst come
    first.
    """
    found = [(place, row.baseline) for place, row in enumerate(comparison.rows)]
    pairs = [(row, base) for row, base in found if base is not None and {row, base} <= answers.rows.keys()]
    if not pairs:
        return _worst(scored, answers)
    values = np.max([np.abs(_apart([answers.rows[place].value for place in pair])) for pair in pairs], axis=0)
    bits = np.max([np.abs(_apart([answers.rows[place].bits for place in pair])) for pair in pairs], axis=0)
    return _most_first(values, bits)


def _most_first(values: Vector, bits: Vector) -> list[int]:
    """Places by values, of those that rounding alone tells apart by bits."""
    whole = np.round(np.clip(values, -_MOST, _MOST) / ROUNDING)
    order: list[int] = np.lexsort((-bits, -whole)).tolist()
    return order


def _apart(pair: Sequence[Vector]) -> Vector:
    """(items,) the difference of two rows; 0 where one has no answer."""
    found: Vector = np.nan_to_num(pair[0] - pair[1])
    return found


def _worst(scored: Scored, answers: Answers) -> list[int]:
    values = np.sum([np.nan_to_num(row.value) for row in answers.rows.values()], axis=0)
    bits = np.sum([np.nan_to_num(row.bits) for row in answers.rows.values()], axis=0)
    return _most_first(values if scored.lower else -values, bits)
