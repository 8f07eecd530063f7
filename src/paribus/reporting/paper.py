"""A paper's own table, beside ours."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paribus.errors import ConfigurationError
from paribus.reporting.columns import AVERAGE
from paribus.reporting.comparison import Comparison, Row
from paribus.reporting.measures import Column

ABSENT = "—"
Beside = Mapping[tuple[int, str], float]
"""A paper's number, in its units, by place of our row and key of our column."""


@dataclass(frozen=True)
class PaperColumn:
    """A column of the paper's table and the task of ours that measures the same; `average` is ours over all tasks."""

    label: str
    task: str


@dataclass(frozen=True)
class PaperRow:
    """A row of the paper's table and the labels that our row has at the factors."""

    label: str
    factors: Mapping[str, str]


@dataclass(frozen=True)
class Paper:
    """The block `paper` of an experiment file. `numbers` is None where nobody has entered them from the paper."""

    title: str
    source: str
    note: str
    columns: tuple[PaperColumn, ...]
    rows: tuple[PaperRow, ...]
    numbers: tuple[tuple[float | None, ...], ...] | None


def parse(block: Mapping[str, Any]) -> Paper:
    """Check and read the block: title, source, note, columns, rows, numbers (rows x columns, in the paper's units).

    A column is a name or {label, task}, a row a name or {label, factors}; numbers may be null, whole or cell by cell.

    Raises:
        ConfigurationError: an unknown or missing key, or numbers that do not fit rows and columns, by its path.
    """
    known = {"title", "source", "note", "columns", "rows", "numbers"}
    if unknown := sorted(set(block) - known):
        raise ConfigurationError(f"paper.{unknown[0]} is unknown; a paper has {', '.join(sorted(known))}")
    if not block.get("title"):
        raise ConfigurationError("paper.title is missing: say which table of which paper this is")
    columns = tuple(_column(item, f"paper.columns[{index}]") for index, item in enumerate(block.get("columns") or ()))
    rows = tuple(_row(item, f"paper.rows[{index}]") for index, item in enumerate(block.get("rows") or ()))
    numbers = _numbers(block.get("numbers"), len(rows), len(columns))
    return Paper(
        str(block["title"]), str(block.get("source") or ""), str(block.get("note") or ""), columns, rows, numbers
    )


def beside(paper: Paper, comparison: Comparison) -> Beside:
    """The paper's numbers by row and column of ours; a row of ours that several of the paper's fit has none."""
    found: dict[tuple[int, str], float] = {}
    known = {column.key for column in comparison.columns}
    for place, row in enumerate(comparison.rows):
        fitting = [index for index, wanted in enumerate(paper.rows) if _same(row, wanted, comparison.factors)]
        for position, column in enumerate(paper.columns) if len(fitting) == 1 and paper.numbers else ():
            number = paper.numbers[fitting[0]][position] if paper.numbers else None
            if number is not None and _key(column) in known:
                found[place, _key(column)] = number
    return found


def side_by_side(paper: Paper, comparison: Comparison) -> list[list[str]]:
    """The paper's table with ours: a header line, then lines of a label and, for each column, theirs, ours, difference.

    Columns that we have not scored have the paper's number alone.
    """
    columns = {column.key: column for column in comparison.columns}
    header = [""]
    for column in paper.columns:
        header += [f"{column.label} (paper)", *(["(ours)", "(difference)"] if _key(column) in columns else [])]
    lines = [header]
    for index, row in enumerate(paper.rows):
        ours = next((candidate for candidate in comparison.finished if _same(candidate, row, comparison.factors)), None)
        line = [row.label]
        for position, column in enumerate(paper.columns):
            number = paper.numbers[index][position] if paper.numbers else None
            line.append(ABSENT if number is None else f"{number:g}")
            if _key(column) in columns:
                line += _ours(ours, columns[_key(column)], number)
        lines.append(line)
    return lines


def sentence(paper: Paper) -> str:
    """Where the paper's numbers come from, or that there are none."""
    if paper.numbers is None:
        return " ".join(filter(None, [f"The numbers of {paper.title} have not been entered here.", paper.note]))
    return " ".join(filter(None, [f"{paper.title}.", paper.source and f"Source: {paper.source}.", paper.note]))


def _column(item: Any, path: str) -> PaperColumn:
    entry: Mapping[str, Any] = {"label": item} if isinstance(item, str) else _mapping(item, path)
    return PaperColumn(entry["label"], str(entry.get("task") or entry["label"].lower()))


def _row(item: Any, path: str) -> PaperRow:
    entry: Mapping[str, Any] = {"label": item} if isinstance(item, str) else _mapping(item, path)
    factors = entry.get("factors") or {}
    return PaperRow(entry["label"], {str(factor): str(label) for factor, label in factors.items()})


def _mapping(item: Any, path: str) -> Mapping[str, Any]:
    if not isinstance(item, Mapping) or not isinstance(item.get("label"), str):
        raise ConfigurationError(f"{path} is {item!r}; it must be a name or a mapping with `label`")
    return item


def _numbers(numbers: Any, rows: int, columns: int) -> tuple[tuple[float | None, ...], ...] | None:
    if numbers is None:
        return None
    if not isinstance(numbers, Sequence) or len(numbers) != rows:
        raise ConfigurationError(f"paper.numbers must be null or a list of {rows} rows, one for each of paper.rows")
    for index, row in enumerate(numbers):
        if not isinstance(row, Sequence) or len(row) != columns:
            raise ConfigurationError(f"paper.numbers[{index}] must be a list of {columns} numbers, as paper.columns")
        for position, number in enumerate(row):
            if number is not None and (isinstance(number, bool) or not isinstance(number, int | float)):
                raise ConfigurationError(f"paper.numbers[{index}][{position}] is {number!r}, neither a number nor null")
    return tuple(tuple(None if number is None else float(number) for number in row) for row in numbers)


def _same(row: Row, wanted: PaperRow, factors: Sequence[str]) -> bool:
    labels = dict(zip(factors, row.labels, strict=True))
    return bool(wanted.factors) and all(labels.get(factor) == label for factor, label in wanted.factors.items())


def _key(column: PaperColumn) -> str:
    """Our column that measures the same."""
    return AVERAGE if column.task in (AVERAGE, "avg") else f"{column.task}/mean"


def _ours(row: Row | None, column: Column, number: float | None) -> list[str]:
    cell = row.cells.get(column.key) if row else None
    value = cell.value if cell else None
    if value is None:
        return [ABSENT, ABSENT]
    decimals = 1 if column.decimals is None else column.decimals
    shown = f"{column.factor * value:.{decimals}f}"
    gap = ABSENT if number is None else f"{column.factor * value - number:+.{decimals}f}".replace("-", "−")
    return [shown, gap]
