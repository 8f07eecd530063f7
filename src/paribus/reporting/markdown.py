"""The report as GitHub-flavoured Markdown."""

from collections.abc import Sequence

from paribus.reporting.comparison import Row
from paribus.reporting.document import Document
from paribus.reporting.layout import link
from paribus.reporting.paper import beside, sentence
from paribus.reporting.tables import markdown, markdown_table


def markdown_report(document: Document) -> str:
    """The whole report as text; plots are files beside it."""
    parts = [f"# {markdown(document.title)}", *([markdown(document.question)] if document.question else [])]
    for table in document.tables:
        parts += [f"## {table.title}", markdown_table(table).rstrip()]
    parts.append("\n".join(f"- {markdown(note)}" for note in document.notes))
    parts.append("Differences from the first row with intervals and p-values are in [report.csv](report.csv).")
    parts += _paper(document)
    for plot in document.plots:
        parts.append(f"![{markdown(plot.alternative)}](plots/{plot.name}.png)\n\n*{markdown(plot.caption)}*")
    lines = [_runs(number, row, document) for number, row in enumerate(document.comparison.rows, start=1)]
    return "\n\n".join([*parts, "## Runs", "\n".join(lines)]) + "\n"


def _paper(document: Document) -> list[str]:
    if document.paper is None:
        return []
    parts = ["## The paper", markdown(sentence(document.paper))]
    return [*parts, _table(beside(document.paper, document.comparison))] if document.paper.numbers else parts


def _table(lines: Sequence[Sequence[str]]) -> str:
    rows = [lines[0], [":--", *["--:"] * (len(lines[0]) - 1)], *lines[1:]]
    return "\n".join(f"| {' | '.join(map(_cell, row))} |" for row in rows)


def _cell(text: str) -> str:
    return text if set(text) <= {":", "-"} else markdown(text)


def _runs(number: int, row: Row, document: Document) -> str:
    entries = []
    for run in row.runs:
        shown = f", [MLflow]({run.mlflow_url})" if run.mlflow_url else ""
        target = link(run.directory, document.directory)
        entries.append(f"[{markdown(run.run_id)}]({target}) (seed {run.seed}{shown})")
    entries += [markdown(f"missing: {reason}") for reason in row.missing]
    return f'- <a id="row-{number}"></a>{markdown(", ".join(row.labels) or "all runs")}: {", ".join(entries)}'
