"""The table and the plots of orderings, from numbers alone."""

import io
import re
from itertools import pairwise
from pathlib import Path

import pytest
from rich.console import Console
from rich.table import Table

from paribus.reporting.data_reports import OTHER_EMBEDDINGS, OrderRow, few_documents, write_order_report
from paribus.reporting.figures_data import order_plots
from paribus.reporting.plots import COLOURS

CURVES = {
    "similarity_inside": [0] * 60 + [3, 5, 2] + [0] * 37,
    "similarity_shuffled": [0] * 48 + [4, 6] + [0] * 50,
    "contexts_of_documents": [0, 2, 5, 3],
    "similarity_along": [0.4, 0.5, 0.3],
    "positions": [0.0, 0.5, 0.25],
}
NUMBERS = {
    "documents": 30,
    "removed": 3,
    "contexts": 10,
    "documents_per_context": 2.1,
    "cut_share": 0.2,
    "padding": 0.0,
    "straddling": 0.034,
    "similarity_inside": 0.31,
    "similarity_shuffled": 0.015,
    "similarity_following": 0.02,
    "similarity_random": 0.01,
    "similarity_adjacent": 0.3,
}


def row(label: str, *, embeddings: str = "same", **numbers: float | None) -> OrderRow:
    return OrderRow(label, NUMBERS | numbers, CURVES, embeddings)


def rendered(table: Table) -> str:
    file = io.StringIO()
    Console(width=100, file=file).print(table)
    return file.getvalue()


@pytest.mark.usefixtures("undrawn")
def test_a_label_in_brackets_is_shown_as_it_is(tmp_path: Path) -> None:
    labels = ("corpus.paths=[/abs/x.jsonl]", "corpus.paths=[rel.jsonl]")
    shown = rendered(write_order_report([row(label) for label in labels], tmp_path))
    assert all(label.removeprefix("corpus.paths=") in shown for label in labels)


@pytest.mark.usefixtures("undrawn")
def test_the_head_says_what_the_labels_are_of(tmp_path: Path) -> None:
    shown = rendered(write_order_report([row("off"), row("minhash", removed=9)], tmp_path, "duplicates"))
    assert "duplicates" in shown and "ordering " not in shown
    assert (tmp_path / "statistics.csv").read_text(encoding="utf-8").startswith("duplicates,")
    assert "\n| duplicates | docs |" in (tmp_path / "statistics.md").read_text(encoding="utf-8")


@pytest.mark.usefixtures("undrawn")
def test_cosines_of_different_embeddings_are_said_to_be_incomparable(tmp_path: Path) -> None:
    rows = [row(f"embedder.dimensions={size}", embeddings=str(size)) for size in (4, 32)]
    shown = rendered(write_order_report(rows, tmp_path))
    assert OTHER_EMBEDDINGS in " ".join(shown.split())
    parts = (tmp_path / "statistics.md").read_text(encoding="utf-8").split("\n\n")
    named = {plot.split("](plots/")[1]: caption for plot, caption in pairwise(parts) if plot.startswith("![")}
    silent = [name for name, caption in named.items() if OTHER_EMBEDDINGS not in caption]
    assert silent == ["contexts_of_documents.svg)"]
    assert any(part.startswith("inside:") and OTHER_EMBEDDINGS in part for part in parts)


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(
    ("documents", "told"),
    [
        (
            (1.21, 1.21),
            "Contexts hold hardly more than one document (1.21), and then no order can do much: take a larger ",
        ),
        ((1.0, 1.4), "Contexts hold hardly more than one document (1.00 to 1.40), and then"),
        ((1.49, 1.5), "Contexts of standard hold hardly more than one document (1.49), and then"),
        ((1.5, None), None),
    ],
)
def test_contexts_of_one_document_are_named(
    tmp_path: Path, documents: tuple[float | None, ...], told: str | None
) -> None:
    rows = [
        row(name, documents_per_context=count) for name, count in zip(("standard", "lexical"), documents, strict=True)
    ]
    write_order_report(rows, tmp_path)
    written = (tmp_path / "statistics.md").read_text(encoding="utf-8")
    assert (few_documents(rows) or "").startswith(told or "") and ("hardly more" in written) == (told is not None)
    assert told is None or "model.context_length" in written


def lines(svg: str, colour: str) -> int:
    """Lines of a colour, the one of the legend among them."""
    return len(re.findall(f"<path [^>]*stroke: {colour.lower()}", svg))


@pytest.mark.parametrize("others", [[], [row("concatenate")]], ids=["alone", "beside another"])
def test_what_was_not_measured_is_no_zero(others: list[OrderRow]) -> None:
    """Contexts of one document have no two documents to compare."""
    curves = CURVES | {"similarity_inside": [0] * 100}
    alone = OrderRow("one_document", NUMBERS | {"similarity_inside": None}, curves, "same")
    plots = {plot.name: plot for plot in order_plots([alone, *others])}
    drawn = [lines(plots["similarity_inside"].svg.decode(), colour) for colour in COLOURS[: 1 + len(others)]]
    assert drawn == [1, *(2 for _ in others)]
