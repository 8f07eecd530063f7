"""The table of tokenizers: on the terminal, as Markdown and CSV, with pictures."""

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
from rich.table import Table

from paribus.reporting.formats.markdown import markdown, markdown_lines, markdown_picture
from paribus.reporting.paper.block import Paper
from paribus.reporting.paper.paper import ABSENT, sentence
from paribus.reporting.plots.comparison import MOST_ROWS
from paribus.reporting.plots.looks import Looks
from paribus.reporting.plots.own_shares import own_shares_plot
from paribus.reporting.plots.picture import Plot, style
from paribus.reporting.plots.tokens import Segmentation, token_frequencies, token_lengths
from paribus.reporting.plots.vocabularies import OverlapMatrix, overlap_plot
from paribus.reporting.tokenizers.columns import LEGEND
from paribus.reporting.tokenizers.paper import paper_lines
from paribus.reporting.tokenizers.row import Number, TokenRow
from paribus.reporting.tokenizers.tables import all_numbers, length_lines, main_lines, replaced_lines
from paribus.reporting.tokenizers.terminal import plain_table, terminal_table
from paribus.store import files

TITLE = "What the tokenizers do"
TEXT = "the training text"
LENGTHS, REPLACED, PAPER = (
    "Tokens by length in characters",
    "What vocabularies have in place of others' tokens",
    "The paper",
)
OF_LENGTHS = (
    "Share of the text's tokens that are so long; in brackets by how much there are more or fewer of them than in the "
    "row that it is compared with. Of a vocabulary, how many of its tokens."
)
OF_REPLACED = (
    "gone: tokens of the other vocabulary that this one lacks, with their share of it and how often each occurs in the "
    "text on average; of new: how often those in their place do; rise: by how much more."
)
ALONE = "No row here makes the paper's choices with a vocabulary of its size, so its numbers stand alone."
BESIDE = "Ours are of the texts given here, the paper's of its own."


def write_token_report(
    rows: Sequence[TokenRow],
    directory: Path,
    factors: Sequence[str],
    *,
    title: str = TITLE,
    paper: Paper | None = None,
    overlap: OverlapMatrix | None = None,
    width: int = 80,
) -> list[Table]:
    """Write `statistics.md`, `statistics.csv` and `plots/` into `directory`; the tables for a terminal of `width`."""
    directory.mkdir(parents=True, exist_ok=True)
    found, head = all_numbers(rows), ", ".join(factors) or "tokenizer"
    plots = _plots(rows, factors, overlap)
    for plot in plots:
        plot.write(directory / "plots")
    beside = paper_lines(paper, rows, found, factors) if paper and paper.numbers else []
    alone = bool(beside) and all(line[3] == ABSENT for line in beside[1:])
    beside = [line[:3] for line in beside] if alone else beside
    tables = {
        title: main_lines(rows, head, found),
        LENGTHS: length_lines(rows, head),
        REPLACED: replaced_lines(rows, head),
        PAPER: beside,
    }
    of_paper = f"{sentence(paper)} {ALONE if alone else BESIDE}" if paper and beside else ""
    parts: list[str] = []
    for name, lines in tables.items():
        if lines:
            notes = {title: LEGEND, LENGTHS: OF_LENGTHS, REPLACED: OF_REPLACED, PAPER: of_paper}
            parts += [
                f"{'##' if parts else '#'} {markdown(name)}",
                markdown_lines(lines),
                markdown(notes.get(name, "")),
            ]
    parts += map(markdown_picture, plots)
    files.write_text(directory / "statistics.md", "\n\n".join(filter(None, parts)) + "\n")
    files.write_text(directory / "statistics.csv", _csv(rows, factors, found))
    shown = [terminal_table(title, rows, head, found, width)]
    heads, *counts = tables[LENGTHS]
    lengths = [[heading.removesuffix(" characters") for heading in heads], *counts[: len(rows)]]
    narrow = {LENGTHS: lengths, REPLACED: [line[:-1] for line in tables[REPLACED]], PAPER: tables[PAPER]}
    said = {LENGTHS: OF_LENGTHS, REPLACED: OF_REPLACED, PAPER: of_paper}
    return [*shown, *(plain_table(name, lines, width, said.get(name)) for name, lines in narrow.items() if lines)]


def _plots(every: Sequence[TokenRow], factors: Sequence[str], overlap: OverlapMatrix | None) -> list[Plot]:
    """Pictures of as many rows as they have room for."""
    rows, looks = every[:MOST_ROWS], Looks(factors, [row.labels for row in every])
    parts = [
        Segmentation(row.name, looks.of(row.labels), row.train["token_lengths"], row.train["frequency_by_rank"])
        for row in rows
    ]
    with mpl.rc_context(style()):
        made = [
            token_lengths(parts, TEXT),
            token_frequencies(parts, TEXT),
            own_shares_plot([(row.name, looks.of(row.labels), row.statistics["own_shares"]) for row in rows]),
            overlap_plot(overlap) if overlap else None,
        ]
    return [plot for plot in made if plot is not None]


def _csv(rows: Sequence[TokenRow], factors: Sequence[str], found: Sequence[Mapping[str, Number]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names = list(dict.fromkeys(name for row in found for name in row))
    writer.writerow([*(factors or ["tokenizer"]), *names])
    for row, own in zip(rows, found, strict=True):
        values = ["" if own.get(name) is None else own[name] for name in names]
        writer.writerow([*(row.labels or (row.name,)), *values])
    return text.getvalue()
