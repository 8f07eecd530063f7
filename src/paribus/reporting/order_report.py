"""What orderings and packings do to contexts: a table on the terminal, as Markdown and CSV, and plots."""

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import matplotlib as mpl
from rich.table import Table
from rich.text import Text

from paribus.reporting.formats.bare_table import bare_table
from paribus.reporting.formats.markdown import markdown_picture
from paribus.reporting.plots.orders import SIMILARITY_PLOTS, order_plots
from paribus.reporting.plots.picture import Plot, style
from paribus.store import files

Number = float | int | None
LEGEND = (
    "inside: mean cosine of two documents of one context; shuffled: the same with the documents in random order, so "
    "inside minus shuffled is what an order does; next: of a document with one of the context trained on after "
    "it; random: of a document with one of a context drawn at random; adjacent: of documents that follow each other in "
    "the order. cut: documents of which no context holds every token; straddling: contexts with text of two stretches "
    "of what is shuffled."
)
APART = (
    "The rows have different embeddings: their similarities (inside, shuffled, next, random, adjacent) are each row's "
    "own and cannot be compared between rows."
)

HARDLY_MORE = 1.5
"""Documents a context below which an order has little to put beside each other."""


@dataclass(frozen=True)
class OrderRow:
    """One ordering with its packing."""

    label: str
    numbers: Mapping[str, Number]
    """Single numbers, those of the order's own record among them."""
    curves: Mapping[str, Sequence[float]]
    embeddings: str
    """Key of the embeddings whose cosines these are; cosines of different embeddings say nothing about each other."""

    @classmethod
    def read(cls, label: str, directory: Path, order: Mapping[str, Any], embeddings: str) -> "OrderRow":
        """The `statistics.json` of a `context_statistics` artefact, with what the record of the order says."""
        content = json.loads((directory / "statistics.json").read_text(encoding="utf-8"))
        own = {name: value for name, value in order.items() if isinstance(value, int | float)}
        return cls(label, own | content["numbers"], content["curves"], embeddings)


@dataclass(frozen=True)
class _Column:
    heading: str
    name: str
    show: Callable[[float], str]
    narrow: bool = True
    """Whether a terminal of 80 columns has room for it."""


_COLUMNS = (
    _Column("docs", "documents", lambda value: f"{value:,.0f}", narrow=False),
    _Column("removed", "removed", lambda value: f"{value:,.0f}", narrow=False),
    _Column("jumps", "jumps", lambda value: f"{value:,.0f}", narrow=False),
    _Column("path weight", "path_weight", lambda value: f"{value:,.0f}", narrow=False),
    _Column("contexts", "contexts", lambda value: f"{value:,.0f}", narrow=False),
    _Column("per ctx", "documents_per_context", lambda value: f"{value:.2f}"),
    _Column("cut", "cut_share", lambda value: f"{value:.1%}"),
    _Column("padding", "padding", lambda value: f"{value:.1%}", narrow=False),
    _Column("straddling", "straddling", lambda value: f"{value:.1%}", narrow=False),
    _Column("inside", "similarity_inside", lambda value: f"{value:.3f}"),
    _Column("shuffled", "similarity_shuffled", lambda value: f"{value:.3f}"),
    _Column("next", "similarity_following", lambda value: f"{value:.3f}"),
    _Column("random", "similarity_random", lambda value: f"{value:.3f}"),
    _Column("adjacent", "similarity_adjacent", lambda value: f"{value:.3f}"),
)


def write_order_report(rows: Sequence[OrderRow], directory: Path, head: str = "ordering") -> Table:
    """Write `statistics.md`, `statistics.csv` and `plots/` into `directory`; the table for the terminal.

    `head` says what the labels of the rows are.
    """
    directory.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context(style()):
        plots = order_plots(rows)
    for plot in plots:
        plot.write(directory / "plots")
    pictures = [markdown_picture(replace(plot, caption=_caption(plot, rows))) for plot in plots]
    few = few_documents(rows)
    told = [_legend(rows), few] if few else [_legend(rows)]
    text = "\n\n".join(["# What the orderings do", _markdown(rows, head), *told, *pictures])
    files.write_text(directory / "statistics.md", text + "\n")
    files.write_text(directory / "statistics.csv", _csv(rows, head))
    return _terminal(rows, head)


def few_documents(rows: Sequence[OrderRow]) -> str | None:
    """That contexts of some rows hold hardly more than one document, and what holds more; None where all hold more."""
    counts = {row.label: row.numbers.get("documents_per_context") for row in rows}
    few = {label: count for label, count in counts.items() if count is not None and count < HARDLY_MORE}
    if not few:
        return None
    low, high = f"{min(few.values()):.2f}", f"{max(few.values()):.2f}"
    measured = low if low == high else f"{low} to {high}"
    which = "" if len(few) == len(rows) else f" of {', '.join(few)}"
    return (
        f"Contexts{which} hold hardly more than one document ({measured}), and then no order can do much: "
        "take a larger model.context_length, and with packing=one_document another packing."
    )


def _legend(rows: Sequence[OrderRow]) -> str:
    return f"{LEGEND} {APART}" if _apart(rows) else LEGEND


def _caption(plot: Plot, rows: Sequence[OrderRow]) -> str:
    return f"{plot.caption} {APART}" if _apart(rows) and plot.name in SIMILARITY_PLOTS else plot.caption


def _apart(rows: Sequence[OrderRow]) -> bool:
    return len({row.embeddings for row in rows}) > 1


def _cells(row: OrderRow) -> list[str]:
    return [
        "–" if row.numbers.get(column.name) is None else column.show(float(row.numbers[column.name] or 0))
        for column in _COLUMNS
    ]


def _markdown(rows: Sequence[OrderRow], head: str) -> str:
    headings = [head, *(column.heading for column in _COLUMNS)]
    lines = [headings, ["---", *("---:" for _ in _COLUMNS)], *([row.label, *_cells(row)] for row in rows)]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def _csv(rows: Sequence[OrderRow], head: str) -> str:
    names = list(dict.fromkeys(name for row in rows for name in row.numbers))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([head, *names])
    for row in rows:
        writer.writerow([row.label, *("" if row.numbers.get(name) is None else row.numbers[name] for name in names)])
    return text.getvalue()


def _terminal(rows: Sequence[OrderRow], head: str) -> Table:
    """The columns for a terminal in which rows differ; what they agree in stands below."""
    cells = list(zip(*map(_cells, rows), strict=True))
    common = [
        f"{column.heading} {values[0]}"
        for column, values in zip(_COLUMNS, cells, strict=True)
        if len(rows) > 1 and len(set(values)) == 1 and values[0] != "–"
    ]
    shown = [
        place
        for place, values in enumerate(cells)
        if _COLUMNS[place].narrow and (len(rows) == 1 or len(set(values)) > 1)
    ]
    agreed = f"All rows: {', '.join(common)}. " if common else ""
    table = bare_table("What the orderings do", f"{agreed}The files have more columns. {_legend(rows)}")
    table.add_column(head, overflow="fold")
    for place in shown:
        table.add_column(_COLUMNS[place].heading, justify="right", no_wrap=True)
    for row in rows:
        own = _cells(row)
        table.add_row(Text(row.label), *(own[place] for place in shown))
    return table
