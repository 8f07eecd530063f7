"""The report as one HTML page that needs nothing else: style, script and plots are inside."""

import base64
import hashlib
import html
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from paribus.reporting.columns import Cell
from paribus.reporting.compare import Comparison
from paribus.reporting.figures import FACTORS, LEARNING_CURVES
from paribus.reporting.formats import ReportDocument, column_groups
from paribus.reporting.measures import Measure
from paribus.reporting.plots import ON_A_DARK_PAGE, looks_of
from paribus.reporting.table import TableLayout, TableLine, change, heading, link, paper_sentence, side_by_side

TEMPLATE, SCRIPT = "page.html.j2", "page.js"
_MOST_TESTS = 2_000
"""Lines of the table of differences; more make a page slow, and the tidy table has all."""

_MOST_COLUMNS = 8
"""Beside labels, of a table that has columns which may be folded away."""


def page(document: ReportDocument) -> str:
    """The page as text; every label is escaped. No script but our own, named by its digest, may run in it."""
    environment = Environment(
        loader=PackageLoader("paribus.reporting", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # Before the table, beside it or among what unfolds.
    where = {FACTORS: "first", LEARNING_CURVES: "shown"}
    pictures: dict[str, list[dict[str, Any]]] = {"first": [], "shown": [], "more": []}
    for plot in document.plots:
        svg = Markup(inline(plot.svg, plot.name, plot.alternative))
        pictures[where.get(plot.name, "more")].append({"svg": svg, "plot": plot})
    comparison, script = document.comparison, environment.get_template(SCRIPT).render()
    looks = looks_of(comparison)
    paper_lines = side_by_side(document.paper, comparison) if document.paper and document.paper.numbers else []
    return environment.get_template(TEMPLATE).render(
        title=document.title,
        question=document.question,
        tables=[_table(table) for table in document.tables],
        looks={
            number: {"sign": look.sign, "colour": themed(look.colour)}
            for number, look in enumerate((looks.of(row.labels) for row in comparison.rows), start=1)
        },
        summary=document.summary,
        notes=document.notes,
        items=document.items,
        tests=_tests(comparison),
        baseline=_baseline(comparison),
        pictures=pictures,
        paper=document.paper and {"sentence": paper_sentence(document.paper), "lines": paper_lines},
        rows=_rows(comparison, document.directory),
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def _baseline(comparison: Comparison) -> str:
    base, *others = comparison.baseline_rows
    if others:
        return "each row's baseline"
    name = comparison.row_name(base)
    return f"the first row ({name})" if base is comparison.rows[0] else name


def _table(layout: TableLayout) -> dict[str, Any]:
    """The table and, where it is wider than a page, one that unfolds, with the columns that are rarely asked for."""
    main = [place for place, column in enumerate(layout.columns) if column.main]
    rest, folded = [place for place in range(len(layout.columns)) if place not in main], None
    if len(layout.columns) > _MOST_COLUMNS and main and rest:
        folded = _table(replace(layout.of(rest), title=f"{layout.title}: more columns"))
        layout = layout.of(main)
    bodies: list[list[TableLine]] = []
    for line in layout.lines:
        if line.starts_group or not bodies:
            bodies.append([])
        bodies[-1].append(line)
    return {
        "layout": layout,
        "groups": column_groups(layout),
        "bodies": bodies,
        "width": len(layout.factors),
        "scored": any(column.scored for column in layout.columns),
        "more": folded,
    }


def _tests(comparison: Comparison) -> dict[str, Any]:
    tested = [
        (column, row, row.cells[column.key])
        for column in comparison.columns
        for row in comparison.finished
        if row.cells[column.key].test is not None
    ][:_MOST_TESTS]
    judged = any(cell.p_value is not None for _, _, cell in tested)
    plain = any(cell.plain_p is not None for _, _, cell in tested)
    header = ["measure", "row", "difference", *(["95 % interval", "p", "p adjusted", "detectable"] if judged else [])]
    header += ["over these models' items alone", "p (items)", "test (items)", *(["p (plain t)"] if plain else [])]
    numbers = {row.labels: number for number, row in enumerate(comparison.rows, start=1)}
    lines = []
    for column, row, cell in tested:
        cells, name = _test(cell, column, judged, plain), comparison.row_name(row)
        lines.append({"measure": heading(column), "row": name, "number": numbers[row.labels], "cells": cells})
    what = "with 95 % intervals, p-values and detectable effects" if judged else "over these models' items alone"
    return {"header": header, "lines": lines, "what": what}


def _test(cell: Cell, column: Measure, judged: bool, plain: bool) -> list[tuple[str, float | str | None]]:
    """Texts of a line with what they are sorted by."""
    test, difference, interval = cell.test, cell.difference, cell.interval
    if test is None or difference is None:
        return []
    cells: list[tuple[str, float | str | None]] = [(change(difference, column), difference)]
    if judged:
        cells.append((_interval(*interval, column), interval[0]) if interval else ("", None))
        cells += [_p(cell.p_value), _p(cell.p_adjusted)]
        least = cell.detectable
        cells.append((change(least, column).replace("+", "±"), least) if least else ("", None))
    cells += [(_interval(test.low, test.high, column), test.low), _p(test.p_value), (test.test, None)]
    return cells + ([_p(cell.plain_p)] if plain else [])


def _interval(low: float, high: float, column: Measure) -> str:
    return f"{change(low, column)} to {change(high, column)}"


def _p(value: float | None) -> tuple[str, float | None]:
    return ("" if value is None else f"{value:.3g}"), value


def _rows(comparison: Comparison, directory: Path) -> list[dict[str, Any]]:
    return [
        {
            "number": number,
            "labels": ", ".join(map(comparison.name, row.labels)) or "all runs",
            "missing": row.missing,
            "runs": [
                {"id": run.run_id, "seed": run.seed, "href": link(run.directory, directory), "mlflow": run.mlflow_url}
                for run in row.runs
            ],
        }
        for number, row in enumerate(comparison.rows, start=1)
    ]


_SVG_START = re.compile(r"<svg[^>]*>")
_SVG_STYLES = re.compile(r"<metadata>.*?</metadata>|<style[^>]*>.*?</style>", re.DOTALL)
_HEX_COLOUR = re.compile(r"#[0-9a-f]{6}\b", re.IGNORECASE)
_TAG, _ATTRIBUTE = re.compile(r"<\w[^>]*>"), re.compile(r' ([\w:-]+)="([^"]*)"')
_REFERENCE = re.compile(r'(url\(|href=")#([^")]+)')


def inline(svg: bytes, name: str, alternative: str) -> str:
    """The SVG element, in colours that follow the theme of the page; its identifiers begin with `name`.

    As a part of the page, its lines can be named under the pointer and marked with their row.

    `alternative` is read out in its place.
    """
    text = svg.decode()
    head = _SVG_START.search(text)
    if head is None:
        raise ValueError(f"{name}: no SVG")
    body = _SVG_STYLES.sub("", text[head.end() :])
    used = {reference[1] for tag in _TAG.findall(body) for reference in _REFERENCE.findall(tag)}

    def changed(attribute: re.Match[str]) -> str:
        whole, kind, value = attribute[0], attribute[1], attribute[2]
        if kind == "id":
            return f' id="{name}-{value}"' if value in used else ""
        if kind == "fill" and _HEX_COLOUR.fullmatch(value):  # of a hatched area, which has no style
            return f' style="fill: {themed(value)}"'
        if kind == "style":
            whole = _HEX_COLOUR.sub(lambda colour: themed(colour[0]), whole)
        return _REFERENCE.sub(rf"\1#{name}-\2", whole)

    body = _TAG.sub(lambda tag: _ATTRIBUTE.sub(changed, tag[0]), body)
    box = re.search(r' viewBox="[^"]*"', head[0])
    return f'<svg role="img" aria-label="{html.escape(alternative)}"{box[0] if box else ""}>{body}'


def themed(colour: str) -> str:
    """A colour of pictures as CSS that follows the theme of the page."""
    dark = ON_A_DARK_PAGE.get(colour.lower())
    return f"light-dark({colour}, {dark})" if dark else colour
