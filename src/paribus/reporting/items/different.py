"""The items in which the rows of a table differ most, as ready text: what was asked, and what each row answered."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from paribus.reporting.items.answers import Answers, answers_of, by_difference
from paribus.reporting.items.item_text import NO_TEXT, ItemText, Texts
from paribus.reporting.items.scored import Scored
from paribus.reporting.items.written import written_by
from paribus.reporting.table.column import PERCENT
from paribus.reporting.table.comparison import Comparison
from paribus.reporting.table.scores import RunScores

_CHARACTERS = 300
"""Longest text that is shown."""
_ROWS = 12
"""Most rows of the table that are shown."""


@dataclass(frozen=True)
class DifferentItems:
    """Of one task or set of documents."""

    name: str
    count: int
    """How many items there are."""
    lines: Sequence[Sequence[str]]
    """A header, then a line an item: its name, its text, and a cell for each of the table's first rows."""


def most_different(
    comparison: Comparison, scored: Scored, scores: Mapping[str, RunScores], texts: Texts, limit: int
) -> DifferentItems:
    """The `limit` items in which rows differ most; `scores` by run id."""
    answers = answers_of(scored, comparison, scores)
    rows = list(answers.rows)[:_ROWS]
    header = ["item", "text", *(comparison.row_name(comparison.rows[place]) for place in rows)]
    written = {place: _written(scored, comparison, place) for place in rows}
    lines = [header]
    for place in by_difference(scored, comparison, answers)[:limit]:
        item = answers.items[place]
        cells = [_answer(scored, answers, row, place, written[row].get(item)) for row in rows]
        lines.append([item, _asked(scored, texts.get(item, NO_TEXT)), *cells])
    return DifferentItems(scored.name, len(answers.items), lines)


def _written(scored: Scored, comparison: Comparison, row: int) -> dict[str, str]:
    """What the first run of a row wrote, by item, at the last checkpoint that was scored."""
    run = comparison.rows[row].runs[0]
    said = written_by(run, scored.name)
    last = max((step for step, _ in said), default=None)
    return {item: text for (step, item), text in said.items() if step == last}


def _answer(scored: Scored, answers: Answers, row: int, place: int, written: str | None) -> str:
    found = answers.rows[row]
    if not found.answers[place]:
        return "no answer"
    if scored.kind == "right":
        bits = "" if math.isnan(found.bits[place]) else f", {found.bits[place]:.2f} bits"
        text = f"{found.right[place]} of {found.answers[place]} right{bits}"
    elif scored.kind == "documents":
        text = f"{found.value[place]:.4f} bits a byte"
    else:
        text = f"{scored.metric} {found.value[place] * scored.column.factor:.4g}"
    return text if written is None else f"{text}: {_one_line(written)[:_CHARACTERS]}"


def _asked(scored: Scored, text: ItemText) -> str:
    """The end of a question, or the beginning of what is scored whole, and the right answer."""
    whole = scored.kind == "documents" or scored.metric in PERCENT
    asked = _one_line(text.question)
    parts = [asked[:_CHARACTERS] if whole else asked[-_CHARACTERS:]] if asked else []
    parts += [f"{'✓' if place == text.right else '·'} {_one_line(each)}" for place, each in enumerate(text.choices)]
    parts += [_one_line(text.ending)] if text.ending else []
    parts += [f"✓ {_one_line(' | '.join(text.accepted))[:_CHARACTERS]}"] if text.accepted else []
    return " / ".join(parts)


def _one_line(text: str) -> str:
    """Text with its whitespace made single spaces, and escapes for what would turn or control the text around it."""
    joined = " ".join(text.split())
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in joined)
