"""The report as one HTML page that needs nothing else: style and plots are inside."""

import base64
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from paribus.reporting.comparison import Comparison
from paribus.reporting.document import Document
from paribus.reporting.layout import Layout, Line, heading, link, quantity
from paribus.reporting.measures import Column
from paribus.reporting.paper import Paper, beside, sentence
from paribus.reporting.picture import Plot

TEMPLATE = "page.html.j2"


def page(document: Document) -> str:
    """The page as text; every label is escaped."""
    environment = Environment(
        loader=PackageLoader("paribus.reporting", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    comparison = document.comparison
    return environment.get_template(TEMPLATE).render(
        title=document.title,
        question=document.question,
        tables=[_table(table) for table in document.tables],
        notes=document.notes,
        tests=_tests(comparison),
        by_seed=any(cell.seeds_test for row in comparison.finished for cell in row.cells.values()),
        baseline=", ".join(comparison.rows[0].labels),
        pictures=[{"source": _embedded(picture), "plot": picture} for picture in document.plots],
        paper=_paper(document.paper, comparison) if document.paper else None,
        rows=_rows(comparison, document.directory),
    )


def _table(layout: Layout) -> dict[str, Any]:
    groups = [(name, len(list(columns))) for name, columns in groupby(layout.columns, key=lambda column: column.group)]
    return {
        "layout": layout,
        "groups": groups,
        "bodies": _bodies(layout.lines),
        "width": len(layout.factors),
        "scored": any(column.scored for column in layout.columns),
    }


def _bodies(lines: Sequence[Line]) -> list[list[Line]]:
    bodies: list[list[Line]] = []
    for line in lines:
        if line.starts_group or not bodies:
            bodies.append([])
        bodies[-1].append(line)
    return bodies


def _tests(comparison: Comparison) -> list[dict[str, str]]:
    lines = []
    for column in comparison.columns:
        for row in comparison.finished:
            cell = row.cells[column.key]
            if cell.test is None or cell.p_holm is None:
                continue
            low, high = _signed(cell.test.low, column), _signed(cell.test.high, column)
            lines.append(
                {
                    "measure": heading(column),
                    "row": ", ".join(row.labels),
                    "difference": _signed(cell.test.difference, column),
                    "interval": f"{low} to {high}",
                    "p": f"{cell.test.p_value:.3g}",
                    "seeds": f"{cell.seeds_test.p_value:.3g}" if cell.seeds_test else "",
                    "holm": f"{cell.p_holm:.3g}",
                }
            )
    return lines


def _signed(value: float, column: Column) -> str:
    text = quantity(abs(value), column.kind)
    return f"−{text}" if value < 0 else f"+{text}"


def _embedded(picture: Plot) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(picture.svg).decode()


def _paper(paper: Paper, comparison: Comparison) -> dict[str, Any]:
    return {"sentence": sentence(paper), "lines": beside(paper, comparison) if paper.numbers else []}


def _rows(comparison: Comparison, directory: Path) -> list[dict[str, Any]]:
    return [
        {
            "number": number,
            "labels": ", ".join(row.labels) or "all runs",
            "missing": row.missing,
            "runs": [
                {"id": run.run_id, "seed": run.seed, "href": link(run.directory, directory), "mlflow": run.mlflow_url}
                for run in row.runs
            ],
        }
        for number, row in enumerate(comparison.rows, start=1)
    ]
