"""Reports without a model: on tokenizers, spans, predictive entropy and orderings, with files and pictures."""

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from rich.table import Table
from rich.text import Text

from paribus.reporting.data_tables import (
    LEGEND,
    WORD_SCORES,
    Number,
    NumberColumn,
    OrderRow,
    TokenRow,
    all_numbers,
    bare_table,
    cell_text,
    digits,
    length_lines,
    main_lines,
    plain_table,
    replaced_lines,
    terminal_table,
    whole,
)
from paribus.reporting.figures import MOST_ROWS
from paribus.reporting.figures_data import (
    EntropyLine,
    OverlapMatrix,
    Reals,
    Segmentation,
    candidates_plot,
    entropy_plot,
    histograms,
    order_plots,
    overlap_plot,
    own_shares_plot,
    token_frequencies,
    token_lengths,
)
from paribus.reporting.formats import escape_markdown, markdown_lines, markdown_picture
from paribus.reporting.paper import Paper, PaperRow, Setting
from paribus.reporting.plots import Looks, Plot, style
from paribus.reporting.table import ABSENT, fits_choices, ours_and_difference, paper_sentence
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
    numbers, head = all_numbers(rows), ", ".join(factors) or "tokenizer"
    plots = _token_plots(rows, factors, overlap)
    for plot in plots:
        plot.write(directory / "plots")
    beside = paper_lines(paper, rows, numbers, factors) if paper and paper.numbers else []
    alone = bool(beside) and all(line[3] == ABSENT for line in beside[1:])
    beside = [line[:3] for line in beside] if alone else beside
    of_paper = f"{paper_sentence(paper)} {PAPER_ALONE if alone else PAPER_BESIDE}" if paper and beside else ""
    lengths, replaced = length_lines(rows, head), replaced_lines(rows, head)
    tables = (
        (title, main_lines(rows, head, numbers), LEGEND),
        (LENGTHS_TITLE, lengths, LENGTHS_NOTE),
        (REPLACED_TITLE, replaced, REPLACED_NOTE),
        (PAPER_TITLE, beside, of_paper),
    )
    parts: list[str] = []
    for name, lines, note in tables:
        if lines:
            heading = f"{'##' if parts else '#'} {escape_markdown(name)}"
            parts += [heading, markdown_lines(lines), escape_markdown(note)]
    parts += map(markdown_picture, plots)
    files.write_text(directory / "statistics.md", "\n\n".join(filter(None, parts)) + "\n")
    labelled = [(row.labels or (row.name,), own) for row, own in zip(rows, numbers, strict=True)]
    files.write_text(directory / "statistics.csv", _numbers_csv(factors or ["tokenizer"], labelled))
    heads, *counts = lengths
    narrow = (
        (LENGTHS_TITLE, [[each.removesuffix(" characters") for each in heads], *counts[: len(rows)]], LENGTHS_NOTE),
        (REPLACED_TITLE, [line[:-1] for line in replaced], REPLACED_NOTE),
        (PAPER_TITLE, beside, of_paper),
    )
    shown = [plain_table(name, lines, width, note) for name, lines, note in narrow if lines]
    return [terminal_table(title, rows, head, numbers, width), *shown]


def _token_plots(every: Sequence[TokenRow], factors: Sequence[str], overlap: OverlapMatrix | None) -> list[Plot]:
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


def _numbers_csv(heads: Sequence[str], rows: Sequence[tuple[Sequence[str], Mapping[str, Number]]]) -> str:
    """A line a row: its labels and numbers, empty where there is none."""
    names = list(dict.fromkeys(name for _, numbers in rows for name in numbers))
    body = [[*labels, *(numbers.get(name) for name in names)] for labels, numbers in rows]
    return _csv([[*heads, *names], *body])


def _csv(lines: Iterable[Sequence[object]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue()


_PERCENT_ENDINGS = ("_share", "_change", "_rise", *WORD_SCORES)
"""Endings of names of what papers print in %."""


def paper_lines(
    paper: Paper, rows: Sequence[TokenRow], numbers: Sequence[Mapping[str, Number]], factors: Sequence[str]
) -> list[list[str]]:
    """A header line, then a line for each number of the paper: its row, its column, theirs, ours and the difference.

    A row of ours stands beside one of the paper's that makes the same choices with a vocabulary of the same size and,
    where the paper says it, unit. Of several of ours that fit one of theirs each has its lines.
    """
    lines = [["", "", "paper", "ours", "difference"]]
    for theirs, printed in zip(paper.rows, paper.numbers or (), strict=False):
        alike = [place for place, row in enumerate(rows) if _fits_row(theirs, row, factors)]
        places: list[int | None] = [*alike] or [None]
        for place in places:
            label = theirs.label if place is None or len(alike) < 2 else f"{theirs.label} ({rows[place].name})"
            for position, (number, column) in enumerate(zip(printed, paper.columns, strict=True)):
                if number is not None:
                    ours = None if place is None else numbers[place].get(column.task)
                    scale = 100 if column.task.endswith(_PERCENT_ENDINGS) else 1
                    value = None if ours is None else scale * float(ours)
                    compared = ours_and_difference(value, number, paper.decimals(position))
                    lines.append([label, column.label, paper.printed(number, position), *compared])
    return lines


def _fits_row(theirs: PaperRow, row: TokenRow, factors: Sequence[str]) -> bool:
    alike = fits_choices(theirs, dict(zip(factors, row.labels, strict=True)), [row.config])
    unit = (row.config.get("tokenizer") or {}).get("unit")
    return alike and theirs.setting.fits(Setting(vocabulary=row.vocab_size, unit=unit))


_QUANTILES = (0.0, 0.05, 0.5, 0.95, 1.0)
_CANDIDATE_HEADINGS = ("bits", "least", "5 %", "median", "mean", "95 %", "greatest")


def write_candidate_report(  # noqa: PLR0917 (numbers, where they go and what stands beside them)
    quantities: Mapping[str, Reals], by_length: Mapping[int, int], directory: Path, title: str, text: str, width: int
) -> Table:
    """Write `candidates.md`, `candidates.csv` (histograms) and `plots/` into `directory`; the table for a terminal
    of `width`: Figure 2 of arXiv 2506.15889. `text` says what the candidates are of.

    `quantities` are bits of every candidate, (n,) with n of at least 1, once whatever its frequency; `by_length` counts
    candidates by their length in characters. The CSV has a row a quantity and bin; `low` and `high` are its edges.
    """
    edges, counts = histograms(quantities)
    with mpl.rc_context(style()):
        plot = candidates_plot(edges, counts, text)
    lines: list[Sequence[str]] = [_CANDIDATE_HEADINGS]
    for name, values in quantities.items():
        least, low, median, high, greatest = np.quantile(values, _QUANTILES).tolist()
        numbers = (least, low, median, float(values.mean()), high, greatest)
        # Adding 0.0 makes a plain zero of the negative one.
        lines.append((name, *(f"{round(number, 3) + 0.0:.3f}" for number in numbers)))
    lengths = ", ".join(f"{count:,} of {length} characters" for length, count in sorted(by_length.items()))
    note = f"{sum(by_length.values()):,} candidates of {text}: {lengths}. Each counts once, however often it occurs."
    parts = [f"# {escape_markdown(title)}", markdown_lines(lines), escape_markdown(note), markdown_picture(plot)]
    plot.write(directory / "plots")
    files.write_text(directory / "candidates.md", "\n\n".join(parts) + "\n")
    bins: list[Sequence[object]] = [["quantity", "low", "high", "candidates"]]
    low, high = edges[:-1].tolist(), edges[1:].tolist()
    for name, own in counts.items():
        bins += zip([name] * len(own), low, high, own.tolist(), strict=True)
    files.write_text(directory / "candidates.csv", _csv(bins))
    return plain_table(title, lines, width, note)


def write_entropy_report(lines: Sequence[EntropyLine], directory: Path) -> None:
    """Write `entropy.csv` and `plots/entropy.svg` into `directory`: Figures 3 and 5 of arXiv 2506.15889.

    A row a character: line from 1, place in it from 1, bits after it, whether a piece ends there. Place 0, without a
    character, is before the first one, where the model gives that. The end of a line ends a piece.
    """
    with mpl.rc_context(style()):
        plot = entropy_plot(lines)
    plot.write(directory / "plots")
    rows: list[Sequence[object]] = [["line", "place", "character", "entropy", "boundary"]]
    for number, line in enumerate(lines, start=1):
        ends = {*line.boundaries, len(line.text)}
        for place, (character, entropy) in enumerate(zip(["", *line.text], line.entropies, strict=True)):
            if not math.isnan(entropy):
                rows.append([number, place, character, f"{entropy:.4f}", "yes" if place in ends else "no"])
    files.write_text(directory / "entropy.csv", _csv(rows))


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


_ORDER_COLUMNS = (
    NumberColumn("docs", "documents", whole, wide=True),
    NumberColumn("removed", "removed", whole, wide=True),
    NumberColumn("jumps", "jumps", whole, wide=True),
    NumberColumn("path weight", "path_weight", whole, wide=True),
    NumberColumn("contexts", "contexts", whole, wide=True),
    NumberColumn("per ctx", "documents_per_context", digits(2)),
    NumberColumn("cut", "cut_share", "{:.1%}".format),
    NumberColumn("padding", "padding", "{:.1%}".format, wide=True),
    NumberColumn("straddling", "straddling", "{:.1%}".format, wide=True),
    NumberColumn("inside", "similarity_inside", digits(3)),
    NumberColumn("shuffled", "similarity_shuffled", digits(3)),
    NumberColumn("next", "similarity_following", digits(3)),
    NumberColumn("random", "similarity_random", digits(3)),
    NumberColumn("adjacent", "similarity_adjacent", digits(3)),
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
    legend = f"{ORDER_LEGEND} {OTHER_EMBEDDINGS}" if len({row.embeddings for row in rows}) > 1 else ORDER_LEGEND
    headings = [head, *(column.heading for column in _ORDER_COLUMNS)]
    lines = [headings, ["---", *("---:" for _ in _ORDER_COLUMNS)], *([row.label, *_order_cells(row)] for row in rows)]
    table = "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
    parts = ["# What the orderings do", table, legend, few_documents(rows), *map(markdown_picture, plots)]
    files.write_text(directory / "statistics.md", "\n\n".join(filter(None, parts)) + "\n")
    labelled = [((row.label,), row.numbers) for row in rows]
    files.write_text(directory / "statistics.csv", _numbers_csv([head], labelled))
    return _order_table(rows, head, legend)


def few_documents(rows: Sequence[OrderRow]) -> str | None:
    """Remark that contexts of some rows hold hardly more than one document; None where all hold more."""
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


def _order_table(rows: Sequence[OrderRow], head: str, legend: str) -> Table:
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
        if not _ORDER_COLUMNS[place].wide and (len(rows) == 1 or len(set(values)) > 1)
    ]
    agreed = f"All rows: {', '.join(common)}. " if common else ""
    table = bare_table("What the orderings do", f"{agreed}The files have more columns. {legend}")
    table.add_column(head, overflow="fold")
    for place in shown:
        table.add_column(_ORDER_COLUMNS[place].heading, justify="right", no_wrap=True)
    for row in rows:
        own = _order_cells(row)
        table.add_row(Text(row.label), *(own[place] for place in shown))
    return table


def _order_cells(row: OrderRow) -> list[str]:
    return [cell_text(column, row.numbers) for column in _ORDER_COLUMNS]
