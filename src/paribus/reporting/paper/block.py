"""The block `paper` of an experiment file: a paper's own table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from paribus.errors import ConfigurationError
from paribus.reporting.paper.setting import KEYS, Setting, parse_setting

_POWER = 1e7
"""From here on papers write a number as a power of ten."""
_MOST_DIGITS = 10
"""After the point."""


@dataclass(frozen=True)
class PaperColumn:
    """A column of the paper's table and what of ours measures the same, as `experiment.table.columns` names it: a task,
    a group of tasks, the average, or a text's perplexity.
    """

    label: str
    task: str
    decimals: int = 0
    """Digits after the point of its numbers, where these have no more."""


@dataclass(frozen=True)
class PaperRow:
    """A row of the paper's table, the labels that our row has at the factors, and what its model was trained with."""

    label: str
    factors: Mapping[str, str]
    setting: Setting


@dataclass(frozen=True)
class Paper:
    """The block `paper` of an experiment file. `numbers` is None where nobody has entered them from the paper."""

    title: str
    source: str
    note: str
    columns: tuple[PaperColumn, ...]
    rows: tuple[PaperRow, ...]
    numbers: tuple[tuple[float | None, ...], ...] | None

    def decimals(self, place: int) -> int:
        """Digits after the point that the paper prints in a column: as it says, or those of the number that has most.

        A zero at the end of a number is lost where it is entered.
        """
        numbers = [row[place] for row in self.numbers or ()]
        return max([self.columns[place].decimals, *(_decimals(number) for number in numbers if number is not None)])

    def printed(self, number: float, place: int) -> str:
        """A number as the paper prints it in that column."""
        shown = f"{number:g}" if abs(number) >= _POWER else f"{number:.{self.decimals(place)}f}"
        return shown.replace("-", "−")


def parse(block: Mapping[str, Any]) -> Paper:
    """Check and read the block: title, source, note, columns, rows, numbers (rows x columns, in its units), decimals.

    A column is a name or {label, task}, a row a name or {label, factors, parameters, vocabulary, budget, unit}; what
    rows share of the last four the block may say itself. Numbers may be null, whole or cell by cell; they are shown
    with `decimals` digits after the point at least, and all of a column with the digits of that which has most.

    Raises:
        ConfigurationError: an unknown or missing key, or numbers that do not fit rows and columns, by its path.
    """
    known = {"title", "source", "note", "columns", "rows", "numbers", "decimals", *KEYS}
    if unknown := sorted(set(block) - known):
        raise ConfigurationError(f"paper.{unknown[0]} is unknown; a paper has {', '.join(sorted(known))}")
    if not block.get("title"):
        raise ConfigurationError("paper.title is missing: say which table of which paper this is")
    decimals = _digits(block.get("decimals", 0))
    columns = tuple(_column(item, path, decimals) for path, item in _items(block, "columns"))
    rows = tuple(_row(item, block, path) for path, item in _items(block, "rows"))
    numbers = _numbers(block.get("numbers"), len(rows), len(columns))
    return Paper(
        title=str(block["title"]),
        source=str(block.get("source") or ""),
        note=str(block.get("note") or ""),
        columns=columns,
        rows=rows,
        numbers=numbers,
    )


def problems(block: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(config path, what is wrong and what would be right) of a block that `parse` refuses."""
    try:
        parse(block)
    except ConfigurationError as error:
        return [("experiment", str(error))]
    return []


def _items(block: Mapping[str, Any], name: str) -> list[tuple[str, Any]]:
    """The items of a list in the block with their paths; none where it is absent."""
    items = block.get(name) or []
    if not isinstance(items, list | tuple):
        raise ConfigurationError(f"paper.{name} is {items!r}; it must be a list")
    return [(f"paper.{name}[{index}]", item) for index, item in enumerate(items)]


def _column(item: Any, path: str, decimals: int) -> PaperColumn:
    entry: Mapping[str, Any] = {"label": item} if isinstance(item, str) else _mapping(item, path)
    if unknown := sorted(set(entry) - {"label", "task"}):
        raise ConfigurationError(f"{path}.{unknown[0]} is unknown; a column has label, task")
    return PaperColumn(entry["label"], str(entry.get("task") or entry["label"].lower()), decimals)


def _row(item: Any, block: Mapping[str, Any], path: str) -> PaperRow:
    entry: Mapping[str, Any] = {"label": item} if isinstance(item, str) else _mapping(item, path)
    if unknown := sorted(set(entry) - {"label", "factors", *KEYS}):
        raise ConfigurationError(f"{path}.{unknown[0]} is unknown; a row has label, factors, {', '.join(KEYS)}")
    factors = entry.get("factors") or {}
    if not isinstance(factors, Mapping):
        raise ConfigurationError(f"{path}.factors is {factors!r}; it must be a mapping of factors to labels")
    labels = {str(factor): str(label) for factor, label in factors.items()}
    compared = bool(labels) and block.get("numbers") is not None
    return PaperRow(entry["label"], labels, parse_setting(entry, block, path, required=compared))


def _mapping(item: Any, path: str) -> Mapping[str, Any]:
    if not isinstance(item, Mapping) or not isinstance(item.get("label"), str):
        raise ConfigurationError(f"{path} is {item!r}; it must be a name or a mapping with `label`")
    return item


def _digits(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST_DIGITS:
        raise ConfigurationError(f"paper.decimals is {value!r}; it must be a whole number from 0 to {_MOST_DIGITS}")
    return value


def _decimals(number: float) -> int:
    exponent = Decimal(repr(number)).normalize().as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


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
