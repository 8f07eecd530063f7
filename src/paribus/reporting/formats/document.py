"""Everything a written report says, before it has a format."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from paribus.reporting.items.different import DifferentItems
from paribus.reporting.notes.notes import Notes
from paribus.reporting.notes.summary import Summary
from paribus.reporting.paper.block import Paper
from paribus.reporting.paper.paper import Beside
from paribus.reporting.table.comparison import Comparison
from paribus.reporting.table.layout import TableLayout

if TYPE_CHECKING:
    from paribus.reporting.plots.picture import Plot


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
    plots: "Sequence[Plot]"
    items: Sequence[DifferentItems]
    paper: Paper | None
    beside: Beside
    directory: Path
