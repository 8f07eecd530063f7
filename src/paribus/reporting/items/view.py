"""What `paribus items` shows, in whatever form: tasks in numbers, or the items of one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from paribus.reporting.items.answers import answers_of, by_difference, by_gain, compared
from paribus.reporting.items.item_text import Texts
from paribus.reporting.items.listed import ListedItem, Overview, listed, overview
from paribus.reporting.items.said import WORST, gaining, heading, of_all, of_task, parting
from paribus.reporting.items.scored import Scored
from paribus.reporting.table.comparison import Comparison
from paribus.reporting.table.scores import RunScores


@dataclass(frozen=True)
class ItemsView:
    """Numbers, items and sentences."""

    overviews: Sequence[Overview]
    scored: Scored | None = None
    """The task or set of documents whose items are listed."""
    items: Sequence[ListedItem] = ()
    heading: str = ""
    notes: Sequence[str] = ()
    warnings: Sequence[str] = ()


def overview_view(comparison: Comparison, asked: Sequence[Scored], gone: Sequence[str]) -> ItemsView:
    """Each task in numbers; `gone` says what of the texts is not there."""
    overviews = [overview(scored, comparison) for scored in asked]
    return ItemsView(overviews, warnings=[*of_all(overviews), *gone])


def items_view(
    comparison: Comparison,
    scored: Scored,
    scores: Mapping[str, RunScores],
    texts: Texts,
    *,
    limit: int | None,
    better: int | None,
    gone: Sequence[str],
) -> ItemsView:
    """The items of one task in which rows part most, or one row is `better` by most; `limit` at most, all for None.

    `scores` have the items that the table leaves out too.
    """
    about, answers = overview(scored, comparison), answers_of(scored, comparison, scores)
    if better is not None:
        order, count = by_gain(scored, comparison, answers, better)
        told = gaining(comparison.row_name(comparison.rows[better]), count)
    else:
        order, count = by_difference(scored, comparison, answers)
        told = parting(scored, count) if compared(comparison, answers) else WORST
    items = listed(scored, comparison, answers, order[:limit], texts)
    return ItemsView(
        [about],
        scored,
        items,
        heading=heading(scored, len(items), len(answers.items), told),
        notes=list(of_task(about, answers, items)),
        warnings=[*of_all([about]), *gone],
    )
