"""A paper's own table, beside ours."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paribus.errors import ConfigurationError
from paribus.reporting.comparison import Comparison, Row
from paribus.reporting.layout import ABSENT, quantity


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


def beside(paper: Paper, comparison: Comparison) -> list[list[str]]:
    """The paper's table with ours: a header line, then lines of label and, for each column, the paper's and ours."""
    lines = [
        ["", *(text for column in paper.columns for text in (f"{column.label} (paper)", f"{column.label} (ours)"))]
    ]
    for index, row in enumerate(paper.rows):
        ours = next((candidate for candidate in comparison.finished if _same(candidate, row, comparison.factors)), None)
        line = [row.label]
        for position, column in enumerate(paper.columns):
            number = paper.numbers[index][position] if paper.numbers else None
            line += [ABSENT if number is None else f"{number:g}", _ours(ours, column)]
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


def _ours(row: Row | None, column: PaperColumn) -> str:
    key = "average" if column.task in ("average", "avg") else f"{column.task}/mean"
    cell = row.cells.get(key) if row else None
    return quantity(cell.value if cell else None, "accuracy")
