"""Formats of a report: plain data for programs, tidy tables, Markdown, LaTeX and the terminal."""

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from paribus.reporting.compare import Arm, Comparison
from paribus.reporting.items import DifferentItems
from paribus.reporting.measures import HELDOUT_SETS, Measure
from paribus.reporting.notes import Notes
from paribus.reporting.paper import Paper
from paribus.reporting.runs import MissingRun
from paribus.reporting.table import (
    ABSENT,
    Beside,
    Published,
    TableEntry,
    TableLayout,
    heading,
    link,
    paper_sentence,
    side_by_side,
)
from paribus.reporting.verdict import Decision, State, Summary

if TYPE_CHECKING:
    from paribus.reporting.plots import Plot


@dataclass(frozen=True)
class ReportDocument:
    """Title, tables, notes and plots of one comparison; `directory` is where links start."""

    title: str
    question: str
    comparison: Comparison
    tables: Sequence[TableLayout]
    summary: Summary
    notes: Notes
    """`legend` has what is said of a paper's numbers."""
    paper: Paper | None
    directory: Path
    plots: "Sequence[Plot]" = ()
    items: Sequence[DifferentItems] = ()


_ROW_FIELDS = ("row", "measure", "run_ids", "run_seeds", "missing")


def report_document(
    document: ReportDocument, tidy: pa.Table, files: Mapping[str, Path], missing: Sequence[MissingRun]
) -> dict[str, Any]:
    """Rows with their cells as `report.csv` has them, what is said below the table, and where the report is."""
    comparison, summary = document.comparison, document.summary
    left_out = {*_ROW_FIELDS, *comparison.factors}
    cells: list[dict[str, Any]] = [{} for _ in comparison.rows]
    for cell in tidy.to_pylist():
        cells[cell["row"] - 1][cell["measure"]] = {k: value for k, value in cell.items() if k not in left_out}
    rows = [row_document(comparison, row) for row in comparison.rows]
    return {
        "title": document.title,
        "factors": list(comparison.factors),
        "primary": sorted(comparison.primary),
        "setting": list(summary.setting),
        "findings": [_finding_document(finding) for finding in summary.findings],
        "rows": [row | {"cells": own} for row, own in zip(rows, cells, strict=True)],
        "notes": [*summary.rows, *document.notes.lines],
        "missing": missing_document(missing),
        "files": {name: str(path) for name, path in sorted(files.items())},
    }


def row_document(comparison: Comparison, row: Arm) -> dict[str, Any]:
    """Labels and runs of a row, without its numbers."""
    return {
        "factors": dict(zip(comparison.factors, row.labels, strict=True)),
        "runs": [run.run_id for run in row.runs],
        "seeds": [run.seed for run in row.runs],
        "missing": list(row.missing),
    }


def missing_document(missing: Sequence[MissingRun]) -> list[dict[str, Any]]:
    """Runs that are not done, and why."""
    return [{"factors": dict(run.factors), "reason": run.reason} for run in missing]


def _finding_document(finding: Decision) -> dict[str, Any]:
    effect, judged = finding.effect, finding.effect.p_adjusted is not None
    return {
        "factors": list(effect.contrast.factors),
        "values": list(effect.contrast.values),
        "references": list(effect.contrast.references),
        "measure": effect.column,
        "state": finding.state,
        "difference": effect.test.difference,
        "low": effect.test.low if judged else None,
        "high": effect.test.high if judged else None,
        "p_value": effect.test.p_value if judged else None,
        "p_adjusted": effect.p_adjusted,
        "detectable": effect.test.detectable if judged else None,
        "seeds": effect.test.seeds,
        "text": finding.text,
    }


_TEXT, _NUMBER, _COUNT = pa.string(), pa.float64(), pa.int64()
_FIELDS: tuple[tuple[str, pa.DataType], ...] = (
    ("measure", _TEXT), ("kind", _TEXT), ("tasks", _TEXT), ("shots", _TEXT), ("metric", _TEXT), ("better", _TEXT),
    ("value", _NUMBER), ("best", pa.bool_()), ("seeds", _COUNT), ("checkpoints", _COUNT), ("items", _COUNT),
    ("half_width", _NUMBER), ("spread_seeds", _NUMBER), ("spread_checkpoints", _NUMBER),
    ("standard_error_items", _NUMBER), ("chance", _NUMBER), ("baseline", _TEXT), ("difference", _NUMBER),
    ("low", _NUMBER), ("high", _NUMBER), ("seeds_share", _NUMBER), ("p_value", _NUMBER),
    ("p_adjusted", _NUMBER), ("detectable", _NUMBER), ("test_items", _TEXT), ("low_items", _NUMBER),
    ("high_items", _NUMBER), ("p_items", _NUMBER), ("p_plain_t", _NUMBER), ("paper", _NUMBER),
    ("paper_difference", _NUMBER), ("paper_parameters", _COUNT), ("run_ids", _TEXT), ("run_seeds", _TEXT),
    ("missing", _TEXT),
)  # fmt: skip


def tidy_table(comparison: Comparison, beside: Beside) -> pa.Table:
    """One row a cell: row number, labels of the factors, the measure, its value, spreads, tests, paper and run ids.

    Values, spreads and differences are shares where `kind` is accuracy; the paper's number is in the paper's unit,
    and `paper_parameters` the size of its model. What
    there is not is null. `run_ids`, `run_seeds`, `tasks`, `shots` are separated by spaces.
    """
    lines = []
    for place, row in enumerate(comparison.rows):
        labels = {"row": place + 1} | dict(zip(comparison.factors, row.labels, strict=True))
        for column in comparison.columns:
            lines.append(labels | _cell_fields(row, column, comparison, beside.get((place, column.key))))
    types = [("row", _COUNT), *((factor, _TEXT) for factor in comparison.factors), *_FIELDS]
    return pa.Table.from_pylist(lines, schema=pa.schema(types))


class _CsvLines(io.StringIO):
    """Lines that are written one by one, each with the end of a line that files here have."""

    def write(self, text: str) -> int:
        return super().write(text.removesuffix("\r\n") + "\n")


def tidy_csv(table: pa.Table) -> str:
    """The table as CSV: a header, then every row; empty where there is nothing."""
    buffer = _CsvLines()
    # Only what is in the terminator is quoted, and a carriage return alone ends a line for whoever reads it.
    writer = csv.writer(buffer, lineterminator="\r\n")
    writer.writerow(table.column_names)
    writer.writerows(zip(*(table[name].to_pylist() for name in table.column_names), strict=True))
    return buffer.getvalue()


def tidy_parquet(table: pa.Table) -> bytes:
    """The table as a Parquet file."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    content: bytes = sink.getvalue().to_pybytes()
    return content


_CELL_FIELDS = (
    "value",
    "best",
    "seeds",
    "checkpoints",
    "items",
    "half_width",
    "difference",
    "p_value",
    "p_adjusted",
    "detectable",
)


def _cell_fields(row: Arm, column: Measure, comparison: Comparison, paper: Published | None) -> dict[str, Any]:
    cell = row.cells[column.key]
    test, (low, high) = cell.test, cell.interval or (None, None)
    base = comparison.rows[row.baseline] if row.baseline is not None and test else None
    gap = None if paper is None or cell.value is None else cell.value * column.factor - paper.number
    return {name: getattr(cell, name) for name in _CELL_FIELDS} | {
        "measure": column.key,
        "kind": column.kind,
        "tasks": _joined([part.task for part in column.parts]),
        "shots": _joined(dict.fromkeys(str(shots) for part in column.parts for shots in part.shots)),
        "metric": _joined(dict.fromkeys(part.metric for part in column.parts)),
        "better": column.better,
        "spread_seeds": cell.seed_spread,
        "spread_checkpoints": cell.checkpoint_spread,
        "standard_error_items": cell.error,
        "chance": comparison.chance.get(column.key),
        "baseline": ", ".join(base.labels) if base else None,
        "low": low,
        "high": high,
        "seeds_share": cell.crossed.quantile.share if cell.crossed else None,
        "test_items": test.test if test else None,
        "low_items": test.low if test else None,
        "high_items": test.high if test else None,
        "p_items": test.p_value if test else None,
        "p_plain_t": cell.plain_p,
        "paper": None if paper is None else paper.number,
        "paper_difference": gap,
        "paper_parameters": None if paper is None else paper.parameters,
        "run_ids": _joined([run.run_id for run in row.runs]),
        "run_seeds": _joined([str(run.seed) for run in row.runs]),
        "missing": "; ".join(row.missing) or None,
    }


def _joined(texts: Sequence[str] | dict[str, None]) -> str | None:
    return " ".join(texts) or None


def markdown_report(document: ReportDocument) -> str:
    """The whole report as text; plots are files beside it."""
    notes = document.notes
    parts = [f"# {escape_markdown(document.title)}", *_head_paragraphs(document)]
    for table in document.tables:
        note = [f"*{escape_markdown(table.note)}.*"] if table.note else []
        parts += [f"## {table.title}", *note, markdown_table(table).rstrip()]
    parts.append("\n".join(f"- {escape_markdown(note)}" for note in notes.legend))
    if notes.details:
        listed = "\n".join(f"- {escape_markdown(note)}" for note in notes.details)
        parts.append(f"<details><summary>Tests, overlap and what was equal</summary>\n\n{listed}\n\n</details>")
    parts.append("Intervals, p-values and detectable effects are in [report.csv](report.csv), where a cell has them.")
    parts += ["Items in which rows differ most are in [items.md](items.md)."] if document.items else []
    if document.paper is not None:
        parts += ["## The paper", escape_markdown(paper_sentence(document.paper))]
        if document.paper.numbers:
            parts.append(markdown_lines(side_by_side(document.paper, document.comparison)))
    parts += map(markdown_picture, document.plots)
    lines = [_runs_line(number, row, document) for number, row in enumerate(document.comparison.rows, start=1)]
    return "\n\n".join([*parts, "## Runs", "\n".join(lines)]) + "\n"


def markdown_items(document: ReportDocument) -> str:
    """The items in which rows differ most, a table a task."""
    parts = [f"# {escape_markdown(document.title)}: items in which rows differ most"]
    for each in document.items:
        title = f"## {escape_markdown(each.name)}, {len(each.lines) - 1} of {each.count:,}"
        parts += [title, markdown_lines(each.lines)]
    return "\n\n".join(parts) + "\n"


def markdown_head(document: ReportDocument) -> str:
    """The answer alone: question, what was compared, findings and warnings."""
    return "\n\n".join(_head_paragraphs(document))


def _head_paragraphs(document: ReportDocument) -> list[str]:
    head, warnings = document.summary, document.notes.warnings
    parts = [escape_markdown(document.question)] if document.question else []
    parts += [f"*{escape_markdown(' · '.join(head.setting))}*"] if head.setting else []
    parts += ["\n".join(f"- {_finding_line(line)}" for line in head.shown)] if head.shown else []
    parts += map(escape_markdown, head.rows)
    return [*parts, *(["\n".join(f"- {escape_markdown(note)}" for note in warnings)] if warnings else [])]


def _finding_line(finding: Decision) -> str:
    """Sentence of a finding; what is beyond chance in bold."""
    text = escape_markdown(finding.text)
    return text if finding.state in ("reserved", "undecided", "unjudged") else f"**{text}**"


def markdown_picture(plot: "Plot") -> str:
    """A picture that lies in `plots/` beside the page, and its caption."""
    return f"![{escape_markdown(plot.alternative)}](plots/{plot.name}.svg)\n\n*{escape_markdown(plot.caption)}*"


def markdown_table(layout: TableLayout) -> str:
    """A GitHub-flavoured Markdown table whose cells are links."""
    headings = [*map(escape_markdown, layout.factors), *(escape_markdown(heading(column)) for column in layout.columns)]
    rows = [headings, [":--"] * len(layout.factors) + ["--:"] * len(layout.columns)]
    rows += [[*map(escape_markdown, line.labels), *map(_markdown_entry, line.entries)] for line in layout.lines]
    if layout.chance and layout.factors:
        rows.append(["*chance*", *[""] * (len(layout.factors) - 1), *(entry.text for entry in layout.chance)])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def escape_markdown(text: str) -> str:
    """Text with everything escaped that Markdown or HTML would interpret."""
    return re.sub(r"([\\`*_{}\[\]<>|#])", r"\\\1", " ".join(text.split()))


def _markdown_entry(entry: TableEntry) -> str:
    text = f"**{entry.text}**" if entry.best else entry.text
    text += f" ± {entry.spreads}" if entry.spread else ""
    text += escape_markdown(entry.mark)
    text = f"[{text}]({entry.href})" if entry.href else text
    return f"{text} {escape_markdown(entry.paper_text)}" if entry.paper else text


def markdown_lines(lines: Sequence[Sequence[str]]) -> str:
    """A table of ready text: a header line, then lines that begin with a label."""
    rows = [lines[0], [":--", *["--:"] * (len(lines[0]) - 1)], *lines[1:]]
    return "\n".join(f"| {' | '.join(map(escape_markdown, row))} |" for row in rows)


def _runs_line(number: int, row: Arm, document: ReportDocument) -> str:
    entries = []
    for run in row.runs:
        shown = f", [MLflow]({run.mlflow_url})" if run.mlflow_url else ""
        target = link(run.directory, document.directory)
        entries.append(f"[{escape_markdown(run.run_id)}]({target}) (seed {run.seed}{shown})")
    entries += [escape_markdown(f"missing: {reason}") for reason in row.missing]
    return f'- <a id="row-{number}"></a>{escape_markdown(", ".join(row.labels) or "all runs")}: {", ".join(entries)}'


_LATEX_ESCAPES = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "—": "---", "∞": r"$\infty$", "−": "$-$", "±": r"$\pm$",
    "†": r"$\dagger$",
}  # fmt: skip
_FIT_TO_LINE = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"


def latex_table(layouts: Sequence[TableLayout], caption: str, notes: Sequence[str]) -> str:
    """`table` environments to be read with \\input, as wide as a line at most."""
    parts = [r"% \usepackage{booktabs,graphicx}"]
    for layout in layouts:
        alignment = "l" * len(layout.factors) + "r" * len(layout.columns)
        body = [*_latex_head(layout), *_latex_lines(layout), r"\bottomrule", r"\end{tabular}}"]
        title = f"{caption}: {layout.title.lower()}." + (f" {layout.note}." if layout.note else "")
        parts += [r"\begin{table}[htbp]", r"\centering", rf"\caption{{{escape_latex(title)}}}", _FIT_TO_LINE]
        parts += [rf"\begin{{tabular}}{{{alignment}}}", r"\toprule", *body, r"\end{table}"]
    parts += [f"% {' '.join(note.split())}" for note in notes]
    return "\n".join(parts) + "\n"


def escape_latex(text: str) -> str:
    """Text with everything escaped that LaTeX would interpret."""
    return "".join(_LATEX_ESCAPES.get(character, character) for character in " ".join(text.split()))


def column_groups(layout: TableLayout) -> list[tuple[str, int]]:
    """Groups of columns that stand beside each other, and how many each has."""
    return [(name, len(list(columns))) for name, columns in groupby(layout.columns, key=lambda column: column.group)]


def _latex_head(layout: TableLayout) -> list[str]:
    groups = column_groups(layout)
    first = [""] * len(layout.factors) + [
        rf"\multicolumn{{{width}}}{{c}}{{{escape_latex(name)}}}" for name, width in groups
    ]
    rules, start = [], len(layout.factors) + 1
    for _, width in groups:
        rules.append(rf"\cmidrule(lr){{{start}-{start + width - 1}}}")
        start += width
    second = [*map(escape_latex, layout.factors), *(escape_latex(column.label) for column in layout.columns)]
    return [" & ".join(first) + r" \\", "".join(rules), " & ".join(second) + r" \\", r"\midrule"]


def _latex_lines(layout: TableLayout) -> list[str]:
    lines: list[str] = []
    previous: tuple[str, ...] = ()
    for line in layout.lines:
        lines += [r"\midrule"] if line.starts_group else []
        lines.append(f"% runs: {' '.join(line.run_ids) or ABSENT}")
        cells = [*map(escape_latex, unrepeated(line.labels, previous)), *map(_latex_entry, line.entries)]
        lines.append(" & ".join(cells) + r" \\")
        previous = line.labels
    if layout.chance and layout.factors:
        cells = ["chance", *[""] * (len(layout.factors) - 1), *(escape_latex(entry.text) for entry in layout.chance)]
        lines += [r"\midrule", " & ".join(cells) + r" \\"]
    return lines


def _latex_entry(entry: TableEntry) -> str:
    text = rf"\textbf{{{escape_latex(entry.text)}}}" if entry.best else escape_latex(entry.text)
    text += rf" {{\scriptsize $\pm$ {escape_latex(entry.spreads)}}}" if entry.spread else ""
    text += f"$^{{{entry.mark}}}$" if entry.mark else ""
    return text + (rf" {{\scriptsize {escape_latex(entry.paper_text)}}}" if entry.paper else "")


_NARROW, _LONGEST_LABEL, _LONGEST_TABLE = 80, 16, 60
_TABLE_STYLE: Mapping[str, Any] = {"box": SIMPLE_HEAD, "show_edge": False, "padding": (0, 1, 0, 0)}

_STATE_SIGNS: Mapping[State, tuple[str, str]] = {
    "better": ("✓", "green"),
    "worse": ("✗", "red"),
    "different": ("≠", "cyan"),
    "reserved": ("!", "yellow"),
    "undecided": ("?", ""),
    "unjudged": ("–", "dim"),
}


@dataclass(frozen=True)
class TerminalTable:
    """A table as wide as the terminal that it is printed on."""

    layout: TableLayout

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The table, for the width that is there."""
        yield terminal_table(self.layout, options.max_width)


def terminal_finding(finding: Decision) -> Text:
    """A sentence of the head of a report, with a sign for how it came out."""
    sign, style = _STATE_SIGNS[finding.state]
    return Text(f"{sign} ", style=style).append(finding.text, style="" if style == "dim" else "default")


def terminal_table(whole: TableLayout, width: int = _NARROW) -> Table:
    """The table for a terminal; where measures or rows are many, the main and the first ones only."""
    layout = _fit_rows(whole, width)
    shown = _fit_columns(layout, width)
    table = Table(title=layout.caption, title_justify="left", title_style="bold", **_TABLE_STYLE)
    table.caption, table.caption_justify = _omitted(len(shown), layout, whole), "left"
    for factor, least in zip(layout.factors, _label_widths(layout), strict=True):
        table.add_column(Text(_factor_heading(factor)), min_width=least, overflow="fold", vertical="bottom")
    cells = [_styled_cells([line.entries[index] for line in layout.lines]) for index in shown]
    for index in shown:
        words = _heading_words(layout, index)
        table.add_column(Text("\n".join(words), justify="right"), justify="right", no_wrap=True, vertical="bottom")
    previous: tuple[str, ...] = ()
    for number, line in enumerate(layout.lines):
        if line.starts_group:
            table.add_section()
        table.add_row(*map(Text, unrepeated(line.labels, previous)), *(column[number] for column in cells))
        previous = line.labels
    chance = [layout.chance[index].text for index in shown] if layout.chance and layout.factors else []
    if any(chance):
        table.add_section()
        table.add_row("chance", *[""] * (len(layout.factors) - 1), *chance, style="dim")
    return table


def lines_table(lines: Sequence[Sequence[str]]) -> Table:
    """Ready text for a terminal: a header line, then lines that begin with a label; turned on its side if too wide."""
    table = Table(**_TABLE_STYLE)
    if sum(2 + max(map(len, column)) for column in zip(*lines, strict=True)) > _NARROW:
        lines = list(zip(*lines, strict=True))
    for index, text in enumerate(lines[0]):
        table.add_column(Text(text), justify="right" if index else "left")
    for line in lines[1:]:
        table.add_row(*map(Text, line))
    return table


def unrepeated(labels: Sequence[str], previous: Sequence[str]) -> list[str]:
    """Labels with the leading ones blank that the row above has too; the last one always stands."""
    same = 0
    while same < len(labels) - 1 and same < len(previous) and labels[same] == previous[same]:
        same += 1
    return [""] * same + list(labels[same:])


def _fit_rows(layout: TableLayout, width: int) -> TableLayout:
    """The first rows; without the spread over checkpoints where that makes room for a column."""
    layout = replace(layout, lines=layout.lines[:_LONGEST_TABLE])
    if _table_width(layout, range(len(layout.columns))) <= width:
        return layout
    bare = [replace(line, entries=tuple(replace(e, checkpoints="") for e in line.entries)) for line in layout.lines]
    return replace(layout, lines=tuple(bare))


def _omitted(columns: int, layout: TableLayout, whole: TableLayout) -> str | None:
    lines = len(layout.lines)
    fewer = [f"{columns} of {len(whole.columns)} columns"] if columns < len(whole.columns) else []
    fewer += [f"{lines} of {len(whole.lines):,} rows"] if lines < len(whole.lines) else []
    if layout.lines[0].entries != whole.lines[0].entries:
        fewer.append("no spread over checkpoints")
    return f"{', '.join(fewer)}; the report's files have all" if fewer else None


def _fit_columns(layout: TableLayout, width: int) -> list[int]:
    """All columns where they fit, else those that decide the question, with others as far as these fit.

    Columns without a value give way first, then parts of the held-out text, then single numbers of shots, then tasks
    from the left.
    """
    shown = list(range(len(layout.columns)))
    giving = [i for i in shown if layout.columns[i].key not in layout.primary]
    empty = [i for i in giving if all(line.entries[i].text == ABSENT for line in layout.lines)]
    parts = [i for i in giving if layout.columns[i].field in HELDOUT_SETS]
    minor = [i for i in giving if layout.columns[i].key.endswith("_shot") or not layout.columns[i].main]
    means = {column.key for column in layout.columns if column.key.endswith("/mean")}
    task_means = [f"{column.key.partition('/')[0]}/mean" for column in layout.columns]
    beside_means = [i for i in shown if task_means[i] in means - {layout.columns[i].key}]
    for less in (empty, parts, minor, beside_means):
        if _table_width(layout, shown) > width:
            shown = [i for i in shown if i not in less] or shown
    while len(shown) > 1 and _table_width(layout, shown) > width:
        rest = [i for i in shown if i in giving] or shown
        shown.remove(rest[0] if layout.columns[rest[0]].scored else rest[-1])
    return shown


def _table_width(layout: TableLayout, shown: Sequence[int]) -> int:
    styled = [_styled_cells([line.entries[index] for line in layout.lines]) for index in shown]
    entries = [max(map(len, column)) for column in styled]
    headings = [max(map(len, _heading_words(layout, index))) for index in shown]
    measures = sum(max(pair) + 2 for pair in zip(entries, headings, strict=True))
    return measures + sum(_label_widths(layout)) + 2 * len(layout.factors)


def _heading_words(layout: TableLayout, index: int) -> list[str]:
    column = layout.columns[index]
    return [column.group, column.label] if column.scored else column.label.rsplit(" ", 1)


def _factor_heading(factor: str) -> str:
    """A long path of the configuration on several lines, each of whole words."""
    return factor.replace(".", ".\n") if len(factor) > _LONGEST_LABEL else factor


def _label_widths(layout: TableLayout) -> list[int]:
    columns = [
        [*_factor_heading(factor).splitlines(), *(line.labels[i] for line in layout.lines)]
        for i, factor in enumerate(layout.factors)
    ]
    return [min(_LONGEST_LABEL, max(map(len, labels))) for labels in columns]


def _styled_cells(entries: Sequence[TableEntry]) -> list[Text]:
    """The cells of a column, with the marks hanging to the right so that the digits stand below each other."""
    width = max((len(entry.mark) for entry in entries), default=0)
    texts = []
    for entry in entries:
        text = Text(entry.text, style="bold" if entry.best else "")
        if entry.spread:
            text.append(f"±{entry.spreads}", style="not bold dim")
        if entry.paper:
            text.append(f" {entry.paper_text}", style="not bold dim")
        texts.append(text.append(entry.mark).append("\u2007" * (width - len(entry.mark))))
    return texts
