"""The block `paper` of an experiment file: a paper's own table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paribus.config.units import format_count, parse_count
from paribus.errors import ConfigurationError


@dataclass(frozen=True)
class PaperColumn:
    """A column of the paper's table and the task of ours that measures the same; `average` is ours over all tasks."""

    label: str
    task: str


@dataclass(frozen=True)
class PaperRow:
    """A row of the paper's table, the labels that our row has at the factors, and the size of its model."""

    label: str
    factors: Mapping[str, str]
    parameters: int | None = None
    """None where the row is of any size."""


@dataclass(frozen=True)
class Paper:
    """The block `paper` of an experiment file. `numbers` is None where nobody has entered them from the paper."""

    title: str
    source: str
    note: str
    columns: tuple[PaperColumn, ...]
    rows: tuple[PaperRow, ...]
    numbers: tuple[tuple[float | None, ...], ...] | None
    reference: int | None = None
    """Parameters of the rows that stand beside a model that has none of the paper's sizes."""


def parse(block: Mapping[str, Any]) -> Paper:
    """Check and read the block: title, source, note, columns, rows, reference, numbers (rows x columns, in its units).

    A column is a name or {label, task}, a row a name or {label, factors, parameters}; numbers may be null, whole or
    cell by cell.

    Raises:
        ConfigurationError: an unknown or missing key, or numbers that do not fit rows and columns, by its path.
    """
    known = {"title", "source", "note", "columns", "rows", "numbers", "reference"}
    if unknown := sorted(set(block) - known):
        raise ConfigurationError(f"paper.{unknown[0]} is unknown; a paper has {', '.join(sorted(known))}")
    if not block.get("title"):
        raise ConfigurationError("paper.title is missing: say which table of which paper this is")
    columns = tuple(_column(item, f"paper.columns[{index}]") for index, item in enumerate(block.get("columns") or ()))
    rows = tuple(_row(item, f"paper.rows[{index}]") for index, item in enumerate(block.get("rows") or ()))
    numbers = _numbers(block.get("numbers"), len(rows), len(columns))
    return Paper(
        title=str(block["title"]),
        source=str(block.get("source") or ""),
        note=str(block.get("note") or ""),
        columns=columns,
        rows=rows,
        numbers=numbers,
        reference=_reference(block.get("reference"), rows),
    )


def _column(item: Any, path: str) -> PaperColumn:
    entry: Mapping[str, Any] = {"label": item} if isinstance(item, str) else _mapping(item, path)
    return PaperColumn(entry["label"], str(entry.get("task") or entry["label"].lower()))


def _row(item: Any, path: str) -> PaperRow:
    entry: Mapping[str, Any] = {"label": item} if isinstance(item, str) else _mapping(item, path)
    factors = entry.get("factors") or {}
    labels = {str(factor): str(label) for factor, label in factors.items()}
    return PaperRow(entry["label"], labels, _parameters(entry.get("parameters"), f"{path}.parameters"))


def _parameters(value: Any, path: str) -> int | None:
    try:
        return None if value is None else parse_count(value)
    except ValueError as error:
        raise ConfigurationError(f"{path}: {error}") from error


def _reference(value: Any, rows: Sequence[PaperRow]) -> int | None:
    size, sizes = _parameters(value, "paper.reference"), {row.parameters for row in rows}
    if size is not None and size not in sizes:
        known = ", ".join(format_count(found) for found in sorted(filter(None, sizes))) or "none"
        raise ConfigurationError(f"paper.reference is {value!r}, the size of none of paper.rows (parameters: {known})")
    return size


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
