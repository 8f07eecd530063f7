"""What has to be said beside items: how they were judged, what the table leaves out, and what is not on record."""

from collections.abc import Iterator, Sequence

from paribus.reporting.items.answers import Answers
from paribus.reporting.items.item_text import NO_TEXT
from paribus.reporting.items.listed import ListedItem, Overview
from paribus.reporting.items.scored import Scored
from paribus.reporting.table.column import PERCENT

_BITS = {
    "choice_bits": "Bits are minus log2 of the right choice's share of the choices' probabilities.",
    "target_bits": "Bits are minus log2 of the probability of the text that should follow.",
}
_WRITTEN = ("exact_match", "f1")
"""How metrics of answers begin that a model writes."""


def heading(scored: Scored, shown: int, total: int, order: str) -> str:
    """Which items are listed, of how many; `order` says which come first."""
    name = ", ".join([scored.name, *(f"{number}-shot" for number in scored.shots)])
    return f"{name}: {shown:,} of {total:,} {'documents' if scored.kind == 'documents' else 'items'}, {order}"


def parting(scored: Scored, apart: int) -> str:
    """The order of `by_difference`, where rows part in so many."""
    by = {"right": "right answers", "score": scored.metric, "documents": "bits a byte"}[scored.kind]
    then = ", then by bits of the right answer" if scored.bits else ""
    return f"those in which rows part most first: by {by}, in which they part in {apart:,}{then}"


def gaining(row: str, count: int) -> str:
    """The order of `by_gain`."""
    return f"of the {count:,} in which {row} is better than what it is compared with, those where it is by most first"


WORST = "those that were answered worst first"
"""The order of `by_difference` where nothing is compared."""


def of_task(about: Overview, answers: Answers, items: Sequence[ListedItem]) -> Iterator[str]:
    """Sentences about the items of a task, or the documents of a set."""
    scored = about.scored
    yield _judged(scored, answers)
    if scored.kind == "right" and scored.bits:
        yield _BITS[scored.bits]
    if scored.metric in PERCENT:
        yield f"{scored.metric} of one item is its part of that of all, so that their mean is the table's."
    yield from _not_on_record(scored, items)


def of_all(overviews: Sequence[Overview]) -> Iterator[str]:
    """Sentences about what tables leave out, a task each."""
    for about in overviews:
        if about.left_out:
            whole = about.items + about.left_out
            yield (
                f"{about.scored.name}: {about.left_out:,} of {whole:,} items are left out of the table, since their "
                "prompt does not fit the context of some run."
            )


def _judged(scored: Scored, answers: Answers) -> str:
    counts = [int(row.answers.max(initial=0)) for row in answers.rows.values()]
    each, seeds = _range(counts), [row.runs for row in answers.rows.values()]
    checkpoints = max(counts) // (max(*seeds, 1) * max(len(scored.shots), 1))
    of = [f"{_range(seeds)} seeds"] if max(seeds) > 1 else []
    of += [f"{checkpoints} checkpoints"] if checkpoints > 1 else []
    of += [f"{len(scored.shots)} numbers of shots"] if len(scored.shots) > 1 else []
    told = f" ({', '.join(of)})" if of else ""
    if scored.kind == "right":
        said = f"{each} answer{'' if each == '1' else 's'}"
        return f"Each row has {said} an item{told}, right or wrong by {scored.metric}."
    less = "; less is better" if scored.lower else ""
    if scored.kind == "documents":
        mean = "" if each == "1" else f", the mean of {each} scorings{told}"
        return f"Bits a byte are of the whole text{mean}{less}."
    mean = "one score" if each == "1" else f"the mean of {each} scores{told}"
    return f"{scored.metric} of an item is {mean}{less}."


def _range(numbers: Sequence[int]) -> str:
    return " to ".join(dict.fromkeys(map(str, (min(numbers), max(numbers)))))


def _not_on_record(scored: Scored, items: Sequence[ListedItem]) -> Iterator[str]:
    if items and all(item.text == NO_TEXT for item in items):
        yield f"Texts of {scored.name} are not on record."
    elif any(len(item.text.choices) > 2 for item in items):
        yield "Which of the wrong choices was taken is not on record."
    elif scored.metric.startswith(_WRITTEN) and not any(row.written for item in items for row in item.rows):
        yield "What the models wrote is not on record, only how it was judged."
