"""Items as they are shown: their texts, and what each row of the table answered."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from paribus.reporting.items.answers import Answers
from paribus.reporting.items.item_text import NO_TEXT, ItemText, Texts
from paribus.reporting.items.pairs import Pair, pairs_of
from paribus.reporting.items.scored import Scored
from paribus.reporting.items.written import Written, written_by
from paribus.reporting.table.comparison import Comparison, measured
from paribus.reporting.table.scores import RunScores


@dataclass(frozen=True)
class Overview:
    """A task or set of documents in numbers."""

    scored: Scored
    items: int
    """That the table's numbers are of."""
    left_out: int
    """That they are not of, since some run's prompt of them does not fit its context."""
    values: Sequence[float | None]
    """Of each row what the table has; None where it has none."""
    pairs: Sequence[Pair]


@dataclass(frozen=True)
class RowOfItem:
    """What one row answered in one item."""

    row: int
    """Place in the table."""
    answers: int
    """Of its runs, at all checkpoints and numbers of shots that are looked at."""
    right: int | None
    """How many of them are; None of what is not right or wrong."""
    value: float | None
    """Mean of the measure, of documents bits a byte; None where there is no answer."""
    bits: float | None
    """Mean bits of the right answer; None where that is not on record."""
    written: str | None
    """What the model of its first seed wrote at the last checkpoint that is looked at; None where not on record."""


@dataclass(frozen=True)
class ListedItem:
    """One item or document."""

    item: str
    text: ItemText
    left_out: bool
    """Whether the table's numbers are not of it."""
    size: int | None
    """Bytes of a document."""
    rows: Sequence[RowOfItem]


def overview(scored: Scored, comparison: Comparison) -> Overview:
    """The numbers of a task or set of documents, by what the table is of."""
    values = [measured(row, scored.column, comparison.scores) for row in comparison.rows]
    sizes = [matrix.shape[1] for seeds in values for matrix in seeds.values()]
    means = [float(np.mean([matrix.mean() for matrix in seeds.values()])) if seeds else None for seeds in values]
    out = len(left_out(scored, comparison))
    return Overview(scored, max(sizes, default=0), out, means, pairs_of(scored, comparison))


def left_out(scored: Scored, comparison: Comparison) -> frozenset[str]:
    """The items that the table leaves out in all its rows."""
    about = comparison.left_out.get(scored.name)
    return frozenset[str]() if about is None or about.kept else frozenset[str]().union(*about.by_shots.values())


def listed(
    scored: Scored, comparison: Comparison, answers: Answers, places: Sequence[int], texts: Texts
) -> list[ListedItem]:
    """The items at these places of `answers`, with their texts."""
    out, written = left_out(scored, comparison), _written(scored, comparison, answers)
    return [
        ListedItem(
            item := answers.items[place],
            texts.get(item, NO_TEXT),
            item in out,
            int(answers.sizes[place]) if len(answers.sizes) else None,
            [_row(scored, answers, row, place, written[row].get(item)) for row in answers.rows],
        )
        for place in places
    ]


def _row(scored: Scored, answers: Answers, row: int, place: int, said: str | None) -> RowOfItem:
    found = answers.rows[row]
    right = int(found.right[place]) if scored.kind == "right" else None
    value, bits = _known(found.value[place]), _known(found.bits[place])
    return RowOfItem(row, int(found.answers[place]), right, value, bits, said)


def _known(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def _written(scored: Scored, comparison: Comparison, answers: Answers) -> dict[int, dict[str, str]]:
    """By row what its first run wrote at its last checkpoint that is looked at."""
    found: dict[int, dict[str, str]] = {}
    for row in answers.rows:
        run = comparison.rows[row].runs[0]
        said = written_by(run, scored.name)
        last = last_step(said, comparison.scores.get(run.run_id))
        found[row] = {item: text for (step, item), text in said.items() if step == last}
    return found


def last_step(said: Written, scores: RunScores | None) -> int | None:
    """The last of the steps at which something was written and that are looked at; of fine-tuning its only one."""
    steps = {step for step, _ in said}
    looked_at = steps.intersection(scores.steps) if scores else set[int]()
    return max(looked_at or steps, default=None)
