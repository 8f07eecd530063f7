"""The report as GitHub-flavoured Markdown."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from paribus.reporting.formats.document import ReportDocument
from paribus.reporting.notes.summary import Finding
from paribus.reporting.paper.paper import sentence, side_by_side
from paribus.reporting.table.comparison import ComparisonRow
from paribus.reporting.table.layout import TableEntry, TableLayout, heading, link

if TYPE_CHECKING:
    from paribus.reporting.plots.picture import Plot


def markdown_report(document: ReportDocument) -> str:
    """The whole report as text; plots are files beside it."""
    notes = document.notes
    parts = [f"# {markdown(document.title)}", *_head(document)]
    for table in document.tables:
        note = [f"*{markdown(table.note)}.*"] if table.note else []
        parts += [f"## {table.title}", *note, markdown_table(table).rstrip()]
    parts.append("\n".join(f"- {markdown(note)}" for note in notes.legend))
    if notes.details:
        listed = "\n".join(f"- {markdown(note)}" for note in notes.details)
        parts.append(f"<details><summary>Tests, overlap and what was equal</summary>\n\n{listed}\n\n</details>")
    parts.append("Intervals, p-values and detectable effects are in [report.csv](report.csv), where a cell has them.")
    parts += ["Items in which rows differ most are in [items.md](items.md)."] if document.items else []
    parts += _paper(document)
    parts += map(markdown_picture, document.plots)
    lines = [_runs(number, row, document) for number, row in enumerate(document.comparison.rows, start=1)]
    return "\n\n".join([*parts, "## Runs", "\n".join(lines)]) + "\n"


def markdown_items(document: ReportDocument) -> str:
    """The items in which rows differ most, a table a task."""
    parts = [f"# {markdown(document.title)}: items in which rows differ most"]
    for each in document.items:
        parts += [f"## {markdown(each.name)}, {len(each.lines) - 1} of {each.count:,}", markdown_lines(each.lines)]
    return "\n\n".join(parts) + "\n"


def markdown_head(document: ReportDocument) -> str:
    """The answer alone: question, what was compared, findings and warnings."""
    return "\n\n".join(_head(document))


def _head(document: ReportDocument) -> list[str]:
    """Paragraphs that stand before the table."""
    head, warnings = document.summary, document.notes.warnings
    parts = [markdown(document.question)] if document.question else []
    parts += [f"*{markdown(' · '.join(head.setting))}*"] if head.setting else []
    parts += ["\n".join(f"- {_finding(line)}" for line in head.shown)] if head.shown else []
    parts += map(markdown, head.rows)
    return [*parts, *(["\n".join(f"- {markdown(note)}" for note in warnings)] if warnings else [])]


def _finding(finding: Finding) -> str:
    """Its sentence; what is beyond chance in bold."""
    text = markdown(finding.text)
    return text if finding.state in ("reserved", "undecided", "unjudged") else f"**{text}**"


def markdown_picture(plot: "Plot") -> str:
    """A picture that lies in `plots/` beside the page, and its caption."""
    return f"![{markdown(plot.alternative)}](plots/{plot.name}.svg)\n\n*{markdown(plot.caption)}*"


def markdown_table(layout: TableLayout) -> str:
    """A GitHub-flavoured Markdown table whose cells are links."""
    headings = [*map(markdown, layout.factors), *(markdown(heading(column)) for column in layout.columns)]
    rules = [":--"] * len(layout.factors) + ["--:"] * len(layout.columns)
    rows = [headings, rules]
    rows += [[*map(markdown, line.labels), *map(_markdown_entry, line.entries)] for line in layout.lines]
    if layout.chance and layout.factors:
        blanks = [""] * (len(layout.factors) - 1)
        rows.append(["*chance*", *blanks, *(entry.text for entry in layout.chance)])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def markdown(text: str) -> str:
    """Text with everything escaped that Markdown or HTML would interpret."""
    return re.sub(r"([\\`*_{}\[\]<>|#])", r"\\\1", " ".join(text.split()))


def _markdown_entry(entry: TableEntry) -> str:
    text = f"**{entry.text}**" if entry.best else entry.text
    text += f" ± {entry.spreads}" if entry.spread else ""
    text += markdown(entry.mark)
    text = f"[{text}]({entry.href})" if entry.href else text
    return f"{text} {markdown(entry.beside)}" if entry.paper else text


def _paper(document: ReportDocument) -> list[str]:
    if document.paper is None:
        return []
    parts = ["## The paper", markdown(sentence(document.paper))]
    return (
        [*parts, markdown_lines(side_by_side(document.paper, document.comparison))] if document.paper.numbers else parts
    )


def markdown_lines(lines: Sequence[Sequence[str]]) -> str:
    """A table of ready text: a header line, then lines that begin with a label."""
    rows = [lines[0], [":--", *["--:"] * (len(lines[0]) - 1)], *lines[1:]]
    return "\n".join(f"| {' | '.join(map(_cell, row))} |" for row in rows)


def _cell(text: str) -> str:
    return text if set(text) <= {":", "-"} else markdown(text)


def _runs(number: int, row: ComparisonRow, document: ReportDocument) -> str:
    entries = []
    for run in row.runs:
        shown = f", [MLflow]({run.mlflow_url})" if run.mlflow_url else ""
        target = link(run.directory, document.directory)
        entries.append(f"[{markdown(run.run_id)}]({target}) (seed {run.seed}{shown})")
    entries += [markdown(f"missing: {reason}") for reason in row.missing]
    return f'- <a id="row-{number}"></a>{markdown(", ".join(row.labels) or "all runs")}: {", ".join(entries)}'
