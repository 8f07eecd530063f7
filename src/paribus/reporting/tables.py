"""The comparison table for the terminal, and as Markdown, CSV and LaTeX."""

import csv
import io
import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from paribus.reporting.comparison import Cell, Comparison
from paribus.reporting.layout import ABSENT, Entry, Layout, heading

_TERMINAL_WIDTH, _LONGEST_LABEL = 80, 16
_STYLE: Mapping[str, Any] = MappingProxyType({"box": SIMPLE_HEAD, "show_edge": False, "padding": (0, 1, 0, 0)})
_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "—": "---", "∞": r"$\infty$", "−": "$-$", "±": r"$\pm$",
}  # fmt: skip


def terminal_table(layout: Layout) -> Table:
    """The table for a terminal; where measures are many, the main ones only."""
    shown = _shown(layout)
    table = Table(title=layout.title, title_justify="left", title_style="bold", **_STYLE)
    if len(shown) < len(layout.columns):
        table.caption = f"{len(shown)} of {len(layout.columns)} columns; the report's files have all"
        table.caption_justify = "left"
    for factor, width in zip(layout.factors, _label_widths(layout), strict=True):
        table.add_column(Text(factor), min_width=width, overflow="fold")
    cells = [_styled([line.entries[index] for line in layout.lines]) for index in shown]
    for index in shown:
        words = _heading_words(layout, index)
        table.add_column(Text("\n".join(words), justify="right"), justify="right", no_wrap=True, vertical="bottom")
    previous: tuple[str, ...] = ()
    for number, line in enumerate(layout.lines):
        if line.starts_group:
            table.add_section()
        labels = map(Text, _unrepeated(line.labels, previous))
        table.add_row(*labels, *(column[number] for column in cells))
        previous = line.labels
    if layout.chance and layout.factors:
        table.add_section()
        blanks = [""] * (len(layout.factors) - 1)
        table.add_row("chance", *blanks, *(layout.chance[index].text for index in shown), style="dim")
    return table


def lines_table(lines: Sequence[Sequence[str]]) -> Table:
    """Ready text for a terminal: a header line, then lines that begin with a label; turned on its side if too wide."""
    table = Table(**_STYLE)
    if sum(2 + max(map(len, column)) for column in zip(*lines, strict=True)) > _TERMINAL_WIDTH:
        lines = list(zip(*lines, strict=True))
    for index, text in enumerate(lines[0]):
        table.add_column(Text(text), justify="right" if index else "left")
    for line in lines[1:]:
        table.add_row(*map(Text, line))
    return table


def markdown_table(layout: Layout) -> str:
    """A GitHub-flavoured Markdown table whose cells are links."""
    headings = [*map(markdown, layout.factors), *(markdown(heading(column)) for column in layout.columns)]
    rules = [":--"] * len(layout.factors) + ["--:"] * len(layout.columns)
    rows = [headings, rules]
    rows += [[*map(markdown, line.labels), *map(_markdown_entry, line.entries)] for line in layout.lines]
    if layout.chance and layout.factors:
        blanks = [""] * (len(layout.factors) - 1)
        rows.append(["*chance*", *blanks, *(entry.text for entry in layout.chance)])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def csv_table(comparison: Comparison) -> str:
    """One line a row, all digits: run ids, and for each measure value, spread and test; empty where there is none."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    scored = ("spread", "spread_over", "items", "difference", "low", "high", "p_value", "p_seeds", "p_holm")
    headers = ["runs", "seeds", *comparison.factors]
    for column in comparison.columns:
        headers += [column.key, *(f"{column.key}:{name}" for name in (scored if column.scored else scored[:1]))]
    writer.writerow(headers)
    for row in comparison.rows:
        line: list[str] = [
            " ".join(run.run_id for run in row.runs),
            " ".join(str(run.seed) for run in row.runs),
            *row.labels,
        ]
        for column in comparison.columns:
            line += _csv_cell(row.cells.get(column.key, Cell()))[: None if column.scored else 2]
        writer.writerow(line)
    return buffer.getvalue()


def latex_table(layouts: Sequence[Layout], caption: str, notes: Sequence[str]) -> str:
    """`table` environments for `booktabs`; labels outside Latin scripts need XeLaTeX or LuaLaTeX."""
    parts = [r"% \usepackage{booktabs}"]
    for layout in layouts:
        alignment = "l" * len(layout.factors) + "r" * len(layout.columns)
        body = [*_latex_head(layout), *_latex_lines(layout), r"\bottomrule", r"\end{tabular}"]
        title = f"{caption}: {layout.title.lower()}."
        parts += [r"\begin{table}", r"\centering", rf"\caption{{{latex(title)}}}", rf"\begin{{tabular}}{{{alignment}}}"]
        parts += [r"\toprule", *body, r"\end{table}"]
    parts += [f"% {note}" for note in notes]
    return "\n".join(parts) + "\n"


def latex(text: str) -> str:
    """Text with everything escaped that LaTeX would interpret."""
    return "".join(_LATEX.get(character, character) for character in " ".join(text.split()))


def markdown(text: str) -> str:
    """Text with everything escaped that Markdown or HTML would interpret."""
    return re.sub(r"([\\`*_{}\[\]<>|#])", r"\\\1", " ".join(text.split()))


def _shown(layout: Layout) -> list[int]:
    """All columns where they fit, else the main ones; single tasks give way to averages and bits per byte."""
    shown = list(range(len(layout.columns)))
    if _width(layout, shown) > _TERMINAL_WIDTH:
        shown = [i for i in shown if not layout.columns[i].key.endswith("_shot") and layout.columns[i].main]
    while len(shown) > 1 and _width(layout, shown) > _TERMINAL_WIDTH:
        shown.pop(0 if layout.columns[shown[0]].scored else -1)
    return shown


def _width(layout: Layout, shown: Sequence[int]) -> int:
    styled = [_styled([line.entries[index] for line in layout.lines]) for index in shown]
    entries = [max(map(len, column)) for column in styled]
    headings = [max(map(len, _heading_words(layout, index))) for index in shown]
    measures = sum(max(pair) + 2 for pair in zip(entries, headings, strict=True))
    return measures + sum(_label_widths(layout)) + 2 * len(layout.factors)


def _heading_words(layout: Layout, index: int) -> list[str]:
    column = layout.columns[index]
    return [column.group, column.label] if column.scored else column.label.rsplit(" ", 1)


def _label_widths(layout: Layout) -> list[int]:
    """Characters each factor's column takes, at most 16."""
    columns = [[factor, *(line.labels[i] for line in layout.lines)] for i, factor in enumerate(layout.factors)]
    return [min(_LONGEST_LABEL, max(map(len, labels))) for labels in columns]


def _unrepeated(labels: Sequence[str], previous: Sequence[str]) -> list[str]:
    """Labels with the leading ones blank that the row above has too; the last one always stands."""
    same = 0
    while same < len(labels) - 1 and same < len(previous) and labels[same] == previous[same]:
        same += 1
    return [""] * same + list(labels[same:])


def _styled(entries: Sequence[Entry]) -> list[Text]:
    """The cells of a column, with the marks hanging to the right so that the digits stand below each other."""
    width = max((len(entry.mark) for entry in entries), default=0)
    texts = []
    for entry in entries:
        text = Text(entry.text, style="bold" if entry.best else "")
        if entry.spread:
            text.append(f"±{entry.spread}", style="not bold dim")
        texts.append(text.append(entry.mark).append("\u2007" * (width - len(entry.mark))))
    return texts


def _markdown_entry(entry: Entry) -> str:
    text = f"**{entry.text}**" if entry.best else entry.text
    text += f" ± {entry.spread}" if entry.spread else ""
    text += markdown(entry.mark)
    return f"[{text}]({entry.href})" if entry.href else text


def _csv_cell(cell: Cell) -> list[str]:
    test = cell.test
    numbers = [cell.value, cell.spread, cell.over, cell.items or None]
    numbers += [test.difference, test.low, test.high, test.p_value] if test else [None] * 4
    seeds = cell.seeds_test.p_value if cell.seeds_test else None
    return ["" if number is None else str(number) for number in [*numbers, seeds, cell.p_holm]]


def _latex_head(layout: Layout) -> list[str]:
    groups = [(name, len(list(columns))) for name, columns in groupby(layout.columns, key=lambda column: column.group)]
    first = [""] * len(layout.factors) + [rf"\multicolumn{{{width}}}{{c}}{{{latex(name)}}}" for name, width in groups]
    rules, start = [], len(layout.factors) + 1
    for _, width in groups:
        rules.append(rf"\cmidrule(lr){{{start}-{start + width - 1}}}")
        start += width
    second = [*map(latex, layout.factors), *(latex(column.label) for column in layout.columns)]
    return [" & ".join(first) + r" \\", "".join(rules), " & ".join(second) + r" \\", r"\midrule"]


def _latex_lines(layout: Layout) -> list[str]:
    lines: list[str] = []
    previous: tuple[str, ...] = ()
    for line in layout.lines:
        lines += [r"\midrule"] if line.starts_group else []
        lines.append(f"% runs: {' '.join(line.run_ids) or ABSENT}")
        cells = [*map(latex, _unrepeated(line.labels, previous)), *map(_latex_entry, line.entries)]
        lines.append(" & ".join(cells) + r" \\")
        previous = line.labels
    if layout.chance and layout.factors:
        blanks = [""] * (len(layout.factors) - 1)
        lines += [
            r"\midrule",
            " & ".join(["chance", *blanks, *(latex(entry.text) for entry in layout.chance)]) + r" \\",
        ]
    return lines


def _latex_entry(entry: Entry) -> str:
    text = rf"\textbf{{{latex(entry.text)}}}" if entry.best else latex(entry.text)
    text += rf" {{\scriptsize $\pm$ {latex(entry.spread)}}}" if entry.spread else ""
    return text + (f"$^{{{entry.mark}}}$" if entry.mark else "")
