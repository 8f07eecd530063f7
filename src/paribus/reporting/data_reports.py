"""Reports without a model: on tokenizers, spans, predictive entropy and orderings, with files and pictures."""

import csv
import io
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from rich.table import Table
from rich.text import Text

from paribus.reporting.data_tables import (
    LEGEND,
    WORD_SCORES,
    Number,
    TokenRow,
    all_numbers,
    bare_table,
    length_lines,
    main_lines,
    plain_table,
    replaced_lines,
    terminal_table,
)
from paribus.reporting.figures import MOST_ROWS
from paribus.reporting.figures_data import (
    SIMILARITY_PLOTS,
    EntropyLine,
    Histograms,
    OverlapMatrix,
    Reals,
    Segmentation,
    candidates_plot,
    entropy_plot,
    order_plots,
    overlap_plot,
    own_shares_plot,
    token_frequencies,
    token_lengths,
)
from paribus.reporting.formats import escape_markdown, markdown_lines, markdown_picture
from paribus.reporting.paper import Paper, PaperRow, Setting
from paribus.reporting.plots import Looks, Plot, style
from paribus.reporting.table import ABSENT, fits_choices, paper_sentence
from paribus.store import files

TOKENIZERS_TITLE = "What the tokenizers do"
TRAINING_TEXT = "the training text"
LENGTHS_TITLE, REPLACED_TITLE, PAPER_TITLE = (
    "Tokens by length in characters",
    "What vocabularies have in place of others' tokens",
    "The paper",
)
LENGTHS_NOTE = (
    "Share of the text's tokens that are so long; in brackets by how much there are more or fewer of them than in the "
    "row that it is compared with. Of a vocabulary, how many of its tokens."
)
REPLACED_NOTE = (
    "gone: tokens of the other vocabulary that this one lacks, with their share of it and how often each occurs in the "
    "text on average; of new: how often those in their place do; rise: by how much more."
)
PAPER_ALONE = "No row here makes the paper's choices with a vocabulary of its size, so its numbers stand alone."
PAPER_BESIDE = "Ours are of the texts given here, the paper's of its own."


def write_token_report(
    rows: Sequence[TokenRow],
    directory: Path,
    factors: Sequence[str],
    *,
    title: str = TOKENIZERS_TITLE,
    paper: Paper | None = None,
    overlap: OverlapMatrix | None = None,
    width: int = 80,
) -> list[Table]:
    """Write `statistics.md`, `statistics.csv` and `plots/` into `directory`; the tables for a terminal of `width`."""
    directory.mkdir(parents=True, exist_ok=True)
    found, head = all_numbers(rows), ", ".join(factors) or "tokenizer"
    plots = _token_plots(rows, factors, overlap)
    for plot in plots:
        plot.write(directory / "plots")
    beside = paper_lines(paper, rows, found, factors) if paper and paper.numbers else []
    alone = bool(beside) and all(line[3] == ABSENT for line in beside[1:])
    beside = [line[:3] for line in beside] if alone else beside
    tables = {
        title: main_lines(rows, head, found),
        LENGTHS_TITLE: length_lines(rows, head),
        REPLACED_TITLE: replaced_lines(rows, head),
        PAPER_TITLE: beside,
    }
    of_paper = f"{paper_sentence(paper)} {PAPER_ALONE if alone else PAPER_BESIDE}" if paper and beside else ""
    parts: list[str] = []
    for name, lines in tables.items():
        if lines:
            notes = {title: LEGEND, LENGTHS_TITLE: LENGTHS_NOTE, REPLACED_TITLE: REPLACED_NOTE, PAPER_TITLE: of_paper}
            parts += [
                f"{'##' if parts else '#'} {escape_markdown(name)}",
                markdown_lines(lines),
                escape_markdown(notes.get(name, "")),
            ]
    parts += map(markdown_picture, plots)
    files.write_text(directory / "statistics.md", "\n\n".join(filter(None, parts)) + "\n")
    files.write_text(directory / "statistics.csv", _token_csv(rows, factors, found))
    shown = [terminal_table(title, rows, head, found, width)]
    heads, *counts = tables[LENGTHS_TITLE]
    lengths = [[heading.removesuffix(" characters") for heading in heads], *counts[: len(rows)]]
    narrow = {
        LENGTHS_TITLE: lengths,
        REPLACED_TITLE: [line[:-1] for line in tables[REPLACED_TITLE]],
        PAPER_TITLE: tables[PAPER_TITLE],
    }
    said = {LENGTHS_TITLE: LENGTHS_NOTE, REPLACED_TITLE: REPLACED_NOTE, PAPER_TITLE: of_paper}
    return [*shown, *(plain_table(name, lines, width, said.get(name)) for name, lines in narrow.items() if lines)]


def _token_plots(every: Sequence[TokenRow], factors: Sequence[str], overlap: OverlapMatrix | None) -> list[Plot]:
    """Pictures of as many rows as they have room for."""
    rows, looks = every[:MOST_ROWS], Looks(factors, [row.labels for row in every])
    parts = [
        Segmentation(row.name, looks.of(row.labels), row.train["token_lengths"], row.train["frequency_by_rank"])
        for row in rows
    ]
    with mpl.rc_context(style()):
        made = [
            token_lengths(parts, TRAINING_TEXT),
            token_frequencies(parts, TRAINING_TEXT),
            own_shares_plot([(row.name, looks.of(row.labels), row.statistics["own_shares"]) for row in rows]),
            overlap_plot(overlap) if overlap else None,
        ]
    return [plot for plot in made if plot is not None]


def _token_csv(rows: Sequence[TokenRow], factors: Sequence[str], found: Sequence[Mapping[str, Number]]) -> str:
    names = list(dict.fromkeys(name for row in found for name in row))
    lines: list[Sequence[object]] = [[*(factors or ["tokenizer"]), *names]]
    for row, own in zip(rows, found, strict=True):
        values = ["" if own.get(name) is None else own[name] for name in names]
        lines.append([*(row.labels or (row.name,)), *values])
    return _csv(lines)


def _csv(lines: Iterable[Sequence[object]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue()


_PERCENT_ENDINGS = ("_share", "_change", "_rise", *WORD_SCORES)
"""Endings of names of what papers print in %."""


def paper_lines(
    paper: Paper, rows: Sequence[TokenRow], found: Sequence[Mapping[str, Number]], factors: Sequence[str]
) -> list[list[str]]:
    """A header line, then a line for each number of the paper: its row, its column, theirs, ours and the difference.

    A row of ours stands beside one of the paper's that makes the same choices with a vocabulary of the same size and,
    where the paper says it, unit. Of several of ours that fit one of theirs each has its lines.
    """
    lines = [["", "", "paper", "ours", "difference"]]
    for wanted, printed in zip(paper.rows, paper.numbers or (), strict=False):
        alike = [place for place, row in enumerate(rows) if _fits_row(wanted, row, factors)]
        places: list[int | None] = [*alike] or [None]
        for place in places:
            label = wanted.label if place is None or len(alike) < 2 else f"{wanted.label} ({rows[place].name})"
            for position, (number, column) in enumerate(zip(printed, paper.columns, strict=True)):
                if number is not None:
                    ours = None if place is None else found[place].get(column.task)
                    scale = 100 if column.task.endswith(_PERCENT_ENDINGS) else 1
                    compared = _ours_and_difference(number, ours, scale, paper.decimals(position))
                    lines.append([label, column.label, paper.printed(number, position), *compared])
    return lines


def _fits_row(wanted: PaperRow, row: TokenRow, factors: Sequence[str]) -> bool:
    alike = fits_choices(wanted, dict(zip(factors, row.labels, strict=True)), [row.config])
    unit = (row.config.get("tokenizer") or {}).get("unit")
    return alike and wanted.setting.fits(Setting(vocabulary=row.vocab_size, unit=unit))


def _ours_and_difference(printed: float, ours: Number, scale: int, digits: int) -> list[str]:
    if ours is None:
        return [ABSENT, ABSENT]
    value = scale * float(ours)
    return [text.replace("-", "−") for text in (f"{value:.{digits}f}", f"{value - printed:+.{digits}f}")]


INFORMATION, LEFT, RIGHT = "mutual information", "left entropy", "right entropy"
_QUANTILES = (0.0, 0.05, 0.5, 0.95, 1.0)
_CANDIDATE_HEADINGS = ("bits", "least", "5 %", "median", "mean", "95 %", "greatest")


@dataclass(frozen=True)
class CandidateScores:
    """Of every candidate, once whatever its frequency, bits; arrays of shape (n,) with n of at least 1."""

    information: Reals
    """The smallest pointwise mutual information of two adjacent characters in it."""
    left_entropy: Reals
    right_entropy: Reals
    """Entropy of the characters before and after it."""
    by_length: Mapping[int, int]
    """Candidates by their length in characters."""


def write_candidate_report(found: CandidateScores, directory: Path, *, title: str, text: str, width: int) -> Table:
    """Write `candidates.md`, `candidates.csv` (histograms) and `plots/` into `directory`; the table for a terminal
    of `width`: Figure 2 of arXiv 2506.15889. `text` says what the candidates are of.
    """
    quantities = {INFORMATION: found.information, LEFT: found.left_entropy, RIGHT: found.right_entropy}
    histograms = Histograms.of(quantities)
    with mpl.rc_context(style()):
        plot = candidates_plot(histograms, text)
    lines: list[Sequence[str]] = [_CANDIDATE_HEADINGS]
    for name, values in quantities.items():
        least, low, median, high, greatest = np.quantile(values, _QUANTILES).tolist()
        numbers = (least, low, median, float(values.mean()), high, greatest)
        # Adding 0.0 makes a plain zero of the negative one.
        lines.append((name, *(f"{round(number, 3) + 0.0:.3f}" for number in numbers)))
    lengths = ", ".join(f"{count:,} of {length} characters" for length, count in sorted(found.by_length.items()))
    note = f"{len(found.information):,} candidates of {text}: {lengths}. Each counts once, however often it occurs."
    parts = [f"# {escape_markdown(title)}", markdown_lines(lines), escape_markdown(note), markdown_picture(plot)]
    plot.write(directory / "plots")
    files.write_text(directory / "candidates.md", "\n\n".join(parts) + "\n")
    files.write_text(directory / "candidates.csv", _candidate_csv(histograms))
    return plain_table(title, lines, width, note)


def _candidate_csv(histograms: Histograms) -> str:
    """A row a quantity and bin; `low` and `high` are its edges in bits."""
    lines: list[Sequence[object]] = [["quantity", "low", "high", "candidates"]]
    edges = histograms.edges.tolist()
    for name, counts in histograms.counts.items():
        lines += zip([name] * len(counts), edges[:-1], edges[1:], counts.tolist(), strict=True)
    return _csv(lines)


def write_entropy_report(lines: Sequence[EntropyLine], directory: Path) -> None:
    """Write `entropy.csv` and `plots/entropy.svg` into `directory`: Figures 3 and 5 of arXiv 2506.15889."""
    with mpl.rc_context(style()):
        plot = entropy_plot(lines)
    plot.write(directory / "plots")
    files.write_text(directory / "entropy.csv", _entropy_csv(lines))


def _entropy_csv(lines: Sequence[EntropyLine]) -> str:
    """A row a character: line from 1, place in it from 1, bits after it, whether a piece ends there.

    Place 0, without a character, is before the first one, where the model gives that. The end of a line ends a piece.
    """
    rows: list[Sequence[object]] = [["line", "place", "character", "entropy", "boundary"]]
    for number, line in enumerate(lines, start=1):
        ends = {*line.boundaries, len(line.text)}
        for place, (character, entropy) in enumerate(zip(["", *line.text], line.entropies, strict=True)):
            if not math.isnan(entropy):
                rows.append([number, place, character, f"{entropy:.4f}", "yes" if place in ends else "no"])
    return _csv(rows)


ORDER_LEGEND = (
    "inside: mean cosine of two documents of one context; shuffled: the same with the documents in random order, so "
    "inside minus shuffled is what an order does; next: of a document with one of the context trained on after "
    "it; random: of a document with one of a context drawn at random; adjacent: of documents that follow each other in "
    "the order. cut: documents of which no context holds every token; straddling: contexts with text of two stretches "
    "of what is shuffled."
)
OTHER_EMBEDDINGS = (
    "The rows have different embeddings: their similarities (inside, shuffled, next, random, adjacent) are each row's "
    "own and cannot be compared between rows."
)

FEW_DOCUMENTS = 1.5
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
class _OrderColumn:
    heading: str
    name: str
    show: Callable[[float], str]
    narrow: bool = True
    """Whether a terminal of 80 columns has room for it."""


_ORDER_COLUMNS = (
    _OrderColumn("docs", "documents", lambda value: f"{value:,.0f}", narrow=False),
    _OrderColumn("removed", "removed", lambda value: f"{value:,.0f}", narrow=False),
    _OrderColumn("jumps", "jumps", lambda value: f"{value:,.0f}", narrow=False),
    _OrderColumn("path weight", "path_weight", lambda value: f"{value:,.0f}", narrow=False),
    _OrderColumn("contexts", "contexts", lambda value: f"{value:,.0f}", narrow=False),
    _OrderColumn("per ctx", "documents_per_context", lambda value: f"{value:.2f}"),
    _OrderColumn("cut", "cut_share", lambda value: f"{value:.1%}"),
    _OrderColumn("padding", "padding", lambda value: f"{value:.1%}", narrow=False),
    _OrderColumn("straddling", "straddling", lambda value: f"{value:.1%}", narrow=False),
    _OrderColumn("inside", "similarity_inside", lambda value: f"{value:.3f}"),
    _OrderColumn("shuffled", "similarity_shuffled", lambda value: f"{value:.3f}"),
    _OrderColumn("next", "similarity_following", lambda value: f"{value:.3f}"),
    _OrderColumn("random", "similarity_random", lambda value: f"{value:.3f}"),
    _OrderColumn("adjacent", "similarity_adjacent", lambda value: f"{value:.3f}"),
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
    others = SIMILARITY_PLOTS if _embeddings_differ(rows) else ()
    captions = [f"{plot.caption} {OTHER_EMBEDDINGS}" if plot.name in others else plot.caption for plot in plots]
    pictures = [markdown_picture(replace(plot, caption=caption)) for plot, caption in zip(plots, captions, strict=True)]
    few = few_documents(rows)
    told = [_order_legend(rows), few] if few else [_order_legend(rows)]
    text = "\n\n".join(["# What the orderings do", _order_markdown(rows, head), *told, *pictures])
    files.write_text(directory / "statistics.md", text + "\n")
    files.write_text(directory / "statistics.csv", _order_csv(rows, head))
    return _order_table(rows, head)


def few_documents(rows: Sequence[OrderRow]) -> str | None:
    """That contexts of some rows hold hardly more than one document, and what holds more; None where all hold more."""
    counts = {row.label: row.numbers.get("documents_per_context") for row in rows}
    few = {label: count for label, count in counts.items() if count is not None and count < FEW_DOCUMENTS}
    if not few:
        return None
    low, high = f"{min(few.values()):.2f}", f"{max(few.values()):.2f}"
    measured = low if low == high else f"{low} to {high}"
    which = "" if len(few) == len(rows) else f" of {', '.join(few)}"
    return (
        f"Contexts{which} hold hardly more than one document ({measured}), and then no order can do much: "
        "take a larger model.context_length, and with packing=one_document another packing."
    )


def _order_legend(rows: Sequence[OrderRow]) -> str:
    return f"{ORDER_LEGEND} {OTHER_EMBEDDINGS}" if _embeddings_differ(rows) else ORDER_LEGEND


def _embeddings_differ(rows: Sequence[OrderRow]) -> bool:
    return len({row.embeddings for row in rows}) > 1


def _order_markdown(rows: Sequence[OrderRow], head: str) -> str:
    headings = [head, *(column.heading for column in _ORDER_COLUMNS)]
    lines = [headings, ["---", *("---:" for _ in _ORDER_COLUMNS)], *([row.label, *_order_cells(row)] for row in rows)]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def _order_csv(rows: Sequence[OrderRow], head: str) -> str:
    names = list(dict.fromkeys(name for row in rows for name in row.numbers))
    lines: list[Sequence[object]] = [[head, *names]]
    for row in rows:
        lines.append([row.label, *("" if row.numbers.get(name) is None else row.numbers[name] for name in names)])
    return _csv(lines)


def _order_table(rows: Sequence[OrderRow], head: str) -> Table:
    """The columns for a terminal in which rows differ; what they agree in stands below."""
    cells = list(zip(*map(_order_cells, rows), strict=True))
    common = [
        f"{column.heading} {values[0]}"
        for column, values in zip(_ORDER_COLUMNS, cells, strict=True)
        if len(rows) > 1 and len(set(values)) == 1 and values[0] != "–"
    ]
    shown = [
        place
        for place, values in enumerate(cells)
        if _ORDER_COLUMNS[place].narrow and (len(rows) == 1 or len(set(values)) > 1)
    ]
    agreed = f"All rows: {', '.join(common)}. " if common else ""
    table = bare_table("What the orderings do", f"{agreed}The files have more columns. {_order_legend(rows)}")
    table.add_column(head, overflow="fold")
    for place in shown:
        table.add_column(_ORDER_COLUMNS[place].heading, justify="right", no_wrap=True)
    for row in rows:
        own = _order_cells(row)
        table.add_row(Text(row.label), *(own[place] for place in shown))
    return table


def _order_cells(row: OrderRow) -> list[str]:
    return [
        "–" if row.numbers.get(column.name) is None else column.show(float(row.numbers[column.name] or 0))
        for column in _ORDER_COLUMNS
    ]
