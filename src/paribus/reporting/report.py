"""Write a report: the same comparison as a page, Markdown, CSV, Parquet, LaTeX, plots, and for the terminal.

The same records give the same bytes: nothing of the moment or the machine goes in.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from paribus.config.groups.evaluation import TableConfig
from paribus.reporting.compare import Comparison, compare
from paribus.reporting.formats import (
    ReportDocument,
    TerminalTable,
    latex_table,
    lines_table,
    markdown_head,
    markdown_items,
    markdown_report,
    report_document,
    terminal_finding,
    tidy_csv,
    tidy_parquet,
    tidy_table,
)
from paribus.reporting.items import Texts, all_scored, items_table, most_different, texts_table, with_left_out
from paribus.reporting.notes import looked_before, notes
from paribus.reporting.paper import parse_paper
from paribus.reporting.runs import FinishedRun, MissingRun
from paribus.reporting.table import layouts, paper_numbers, paper_sentence, side_by_side, without_number
from paribus.reporting.verdict import summary
from paribus.store.files import write_bytes

if TYPE_CHECKING:
    from paribus.reporting.figures import Curve
    from paribus.reporting.figures_data import OverlapMatrix
    from paribus.reporting.plots import Plot

PLOTS = "plots"
SHOWN_ITEMS = 20
"""Items shown of each task."""


@dataclass(frozen=True)
class Report:
    """A written report: its numbers, its files by name, and what to print with rich."""

    comparison: Comparison
    files: Mapping[str, Path]
    """`report.html`, `report.md`, `report.csv`, `report.parquet`, `tables.tex`, `plots/<name>.svg` and,
    where there are items, `items.md`, `items.parquet` and `texts.parquet`."""
    terminal: RenderableType
    plain: Mapping[str, Any]
    """The table as plain data, for programs."""
    head: str
    """Markdown before the table."""


def write_report(
    runs: Sequence[FinishedRun],
    *,
    title: str,
    factors: Sequence[str],
    directory: Path,
    paper: Mapping[str, Any] | None = None,
    question: str = "",
    missing: Sequence[MissingRun] = (),
    curves: "Mapping[str, Curve] | None" = None,
    overlap: "OverlapMatrix | None" = None,
    table: TableConfig | None = None,
    looks: Mapping[str, int] = MappingProxyType({}),
    texts: Callable[[str], Texts] = lambda task: {},
    tell: Callable[[RenderableType], None] = lambda shown: None,
) -> Report:
    """Compare runs and write the report into `directory`, which is created.

    Args:
        runs: finished runs; those of the baseline, which the others are tested against, first.
        title: caption of the table.
        factors: configuration paths in which the runs are declared to differ, such as `tokenizer`.
        paper: block `paper` of an experiment file, whose numbers stand beside ours.
        question: what the table is meant to answer.
        missing: what was asked for and has no finished run; it is listed, and its cells are empty.
        curves: learning curves by run id; read from each run's events where not given.
        overlap: how the vocabularies of the runs overlap, for a plot of it.
        table: block `table` of an experiment file; without it the table has all measures.
        texts: the texts of the items of a task, or of a set of documents, by its name.
        tell: called with what a terminal shows, before pictures are drawn and files written, which takes longer.

    Raises:
        FairnessError: the runs differ in more than the factors and the seed.
        ConfigurationError: no runs, a run without a label, or a malformed table or paper block.
    """
    reference = parse_paper(paper) if paper else None
    comparison = compare(runs, factors, missing, table)
    numbers = paper_numbers(reference, comparison) if reference else {}
    sentences = notes(comparison)
    sentences = replace(
        sentences,
        warnings=(*sentences.warnings, *looked_before(looks)),
        legend=(*sentences.legend, *(without_number(reference, comparison) if reference else ())),
    )
    document = ReportDocument(
        title=title,
        question=question,
        comparison=comparison,
        tables=layouts(comparison, directory, numbers if comparison.table.paper else {}),
        summary=summary(comparison),
        notes=sentences,
        paper=reference,
        directory=directory,
    )
    terminal = _terminal(document)
    tell(terminal)
    tidy, scored, scores = tidy_table(comparison, numbers), all_scored(comparison), with_left_out(comparison, runs)
    item_texts = {name: texts(name) for name in scored}
    items = [most_different(comparison, each, scores, item_texts[name], SHOWN_ITEMS) for name, each in scored.items()]
    document = replace(document, plots=_plots(document, curves, overlap), items=items)
    contents = _contents(document, tidy)
    if scored:
        contents["items.parquet"] = tidy_parquet(items_table(comparison, list(scored.values()), scores))
        contents["texts.parquet"] = tidy_parquet(texts_table(item_texts))
    files = {name: _write(directory / name, content) for name, content in contents.items()}
    for path in {*(directory / PLOTS).glob("*.svg")} - {*files.values()}:
        path.unlink()  # of an earlier report
    return Report(comparison, files, terminal, report_document(document, tidy, files, missing), markdown_head(document))


def _plots(
    document: ReportDocument, curves: "Mapping[str, Curve] | None", overlap: "OverlapMatrix | None"
) -> list["Plot"]:
    from paribus.reporting.figures import MOST_ROWS, plots, read_curves

    comparison = document.comparison
    if curves is None:
        curves = read_curves([run for row in comparison.finished[:MOST_ROWS] for run in row.runs])
    return plots(comparison, curves, overlap, document.summary.findings)


def _contents(document: ReportDocument, tidy: pa.Table) -> dict[str, bytes]:
    from paribus.reporting.page import page

    latex_notes = [*document.summary.lines, *document.notes.lines]
    texts = {
        "report.html": page(document),
        "report.md": markdown_report(document),
        **({"items.md": markdown_items(document)} if document.items else {}),
        "report.csv": tidy_csv(tidy),
        "tables.tex": latex_table(document.tables, document.title, latex_notes),
    }
    contents = {name: text.encode() for name, text in texts.items()} | {"report.parquet": tidy_parquet(tidy)}
    return contents | {f"{PLOTS}/{plot.name}.svg": plot.svg for plot in document.plots}


def _terminal(document: ReportDocument) -> RenderableType:
    head, notes = document.summary, document.notes
    parts: list[RenderableType] = [Text(document.title, style="bold")]
    parts += [Text(document.question)] if document.question else []
    parts += [Text(" · ".join(head.setting), style="dim")] if head.setting else []
    parts += [Text(), *map(terminal_finding, head.shown), *map(Text, head.rows)] if head.lines else []
    parts += [Text(), *(Text(line, style="yellow") for line in notes.warnings)] if notes.warnings else []
    parts += [Padding(TerminalTable(table), (1, 0, 0, 0)) for table in document.tables]
    parts += [Text(), *(Text(note, style="dim") for note in notes.legend)]
    if notes.details:
        more = (
            f"{len(notes.details)} more notes, of tests, overlap and what was equal, are in report.html and report.md."
        )
        parts.append(Text(more, style="dim"))
    if document.paper:
        parts += [Text(), Text(paper_sentence(document.paper), style="dim")]
    if document.paper and document.paper.numbers:
        parts.append(lines_table(side_by_side(document.paper, document.comparison)))
    return Group(*parts)


def _write(path: Path, content: bytes) -> Path:
    """Replace the file in one step, so that nobody reads half a report; the same is left alone, for MLflow to read."""
    if not path.is_file() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, content)
    return path
