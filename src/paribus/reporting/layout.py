"""A comparison as text: the same words, numbers, marks and links for every output format."""

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from urllib.parse import quote

from paribus.config.units import format_count, format_hours, format_size
from paribus.reporting.comparison import Cell, Comparison, Row
from paribus.reporting.measures import Column, Kind

ABSENT = "—"
_ROUNDING = 1e-9
_FORMATS: Mapping[Kind, Callable[[float], str]] = MappingProxyType(
    {
        "accuracy": lambda value: f"{100 * value:.1f}",
        "count": format_count,
        "size": format_size,
        "flops": "{:.2e}".format,
        "hours": format_hours,
    }
)
LEVELS = ((0.01, "**"), (0.05, "*"))


@dataclass(frozen=True)
class Entry:
    """The text of one cell: value, spread without its sign, significance mark, and where it leads."""

    text: str = ABSENT
    spread: str = ""
    mark: str = ""
    best: bool = False
    href: str = ""


@dataclass(frozen=True)
class Line:
    """One row of text. `number` counts from 1 and names the row's place in the list of runs."""

    number: int
    labels: tuple[str, ...]
    entries: tuple[Entry, ...]
    run_ids: tuple[str, ...]
    starts_group: bool
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class Layout:
    """One table of text."""

    title: str
    factors: tuple[str, ...]
    columns: tuple[Column, ...]
    lines: tuple[Line, ...]
    chance: tuple[Entry, ...] | None = None


def layouts(comparison: Comparison, directory: Path) -> list[Layout]:
    """The table of scores, and the table of what each run read and cost; links are relative to `directory`."""
    scored = [column for column in comparison.columns if column.scored]
    other = [column for column in comparison.columns if not column.scored]
    chance = tuple(
        Entry(quantity(comparison.chance.get(column.key), column.kind))
        if column.key in comparison.chance
        else Entry("")
        for column in scored
    )
    tables = []
    if scored:
        tables.append(_layout("Scores", comparison, scored, directory, chance if comparison.chance else None))
    if other:
        tables.append(_layout("Text and training", comparison, other, directory, None))
    return tables


def quantity(value: float | None, kind: Kind) -> str:
    """A number as it stands in a table: accuracies in percent, sizes and counts with units."""
    if value is None:
        return ABSENT
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("∞" if value > 0 else "−∞")
    return _FORMATS.get(kind, "{:.3f}".format)(value)


def mark_of(p_value: float | None) -> str:
    """The significance mark of an adjusted p-value."""
    return next((mark for level, mark in LEVELS if p_value is not None and p_value < level), "")


def link(target: Path, directory: Path) -> str:
    """A relative URL from the report's directory to a run's."""
    return quote(Path(os.path.relpath(target.resolve(), directory.resolve())).as_posix())


def heading(column: Column) -> str:
    """Name of a column where there is one line for it."""
    return f"{column.group} {column.label}" if column.scored else column.label


def _layout(
    title: str,
    comparison: Comparison,
    columns: Sequence[Column],
    directory: Path,
    chance: tuple[Entry, ...] | None,
) -> Layout:
    lines, previous = [], None
    for number, row in enumerate(comparison.rows, start=1):
        entries = tuple(_entry(row.cells.get(column.key, Cell()), column, row, number, directory) for column in columns)
        starts = bool(row.labels) and previous is not None and row.labels[0] != previous
        previous = row.labels[0] if row.labels else None
        ids = tuple(run.run_id for run in row.runs)
        lines.append(Line(number, row.labels, entries, ids, starts, row.missing))
    return Layout(title, comparison.factors, tuple(columns), tuple(lines), chance)


def _entry(cell: Cell, column: Column, row: Row, number: int, directory: Path) -> Entry:
    if cell.value is None:
        return Entry()
    href = link(row.runs[0].directory, directory) if len(row.runs) == 1 else f"#row-{number}"
    spread = "" if cell.spread is None or not _spread_shows(column, cell) else quantity(cell.spread, column.kind)
    return Entry(quantity(cell.value, column.kind), spread, mark_of(cell.p_holm), cell.best, href)


def _spread_shows(column: Column, cell: Cell) -> bool:
    """A measure of the whole run that no seed changed has no spread worth a place."""
    return column.scored or (cell.spread or 0.0) > _ROUNDING * abs(cell.value or 0.0)
