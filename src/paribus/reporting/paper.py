"""Block `paper` of an experiment file: a paper's own table, and what the models of its rows were trained with."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from paribus.config.units import format_count, format_size, parse_count, parse_size
from paribus.errors import ConfigurationError, Problem

if TYPE_CHECKING:
    from paribus.reporting.runs import FinishedRun

ANY = "any"
KEYS = ("parameters", "vocabulary", "budget", "unit")
UNITS = ("byte", "character")
"""Units of which tokens are made, as in `tokenizer.unit`."""
TOKENS, TEXT = "tokens", "text"
_BUDGETS = {"equal_tokens": TOKENS, "equal_text": TEXT}
_SAME_SIZE = 1.5
"""Ratio of parameters up to which models are of one size: vocabularies of 32K and 128K differ by as much."""
_SAME_AMOUNT = 1.05
"""Ratio up to which vocabularies and budgets are equal: 32K may be 32,000 or 32,768."""
_POWER = 1e7
"""Number from which papers write a power of ten."""
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
class PaperBudget:
    """An amount of `tokens`, or of bytes of `text`."""

    amount: int
    unit: str

    def __str__(self) -> str:
        if self.unit == TEXT:
            return f"{format_size(self.amount).replace('.0 ', ' ')} of text"
        return f"{short_count(self.amount)} tokens"


@dataclass(frozen=True)
class Setting:
    """Parameters, vocabulary size, budget and unit; None where it does not matter, or is not known of a run."""

    parameters: int | None = None
    vocabulary: int | None = None
    budget: PaperBudget | None = None
    unit: str | None = None

    @classmethod
    def of(cls, run: "FinishedRun") -> "Setting":
        """Setting of a run of ours: its vocabulary as it came out, which may be smaller than asked for, and its budget.

        A budget in FLOPs or steps is none that a paper has.
        """
        budget, tokenizer = run.config.get("budget") or {}, run.config.get("tokenizer") or {}
        unit = _BUDGETS.get(budget.get("kind", ""))
        return cls(
            parameters=int(run.training.get("parameters") or 0) or None,
            vocabulary=run.vocabulary_size or tokenizer.get("vocab_size"),
            budget=PaperBudget(int(budget[unit]), unit) if unit else None,
            unit=tokenizer.get("unit"),
        )

    def fits(self, ours: "Setting") -> bool:
        """True if one of our runs is like this row of a paper."""
        same = self.budget is None or (ours.budget is not None and ours.budget.unit == self.budget.unit)
        amounts = [budget.amount if budget else None for budget in (self.budget, ours.budget)]
        return (
            same
            and self.unit in (None, ours.unit)
            and _near(self.parameters, ours.parameters, _SAME_SIZE)
            and _near(self.vocabulary, ours.vocabulary, _SAME_AMOUNT)
            and _near(amounts[0], amounts[1], _SAME_AMOUNT)
        )


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


def parse_paper(block: Mapping[str, Any]) -> Paper:
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
    decimals = block.get("decimals", 0)
    if isinstance(decimals, bool) or not isinstance(decimals, int) or not 0 <= decimals <= _MOST_DIGITS:
        raise ConfigurationError(f"paper.decimals is {decimals!r}; it must be a whole number from 0 to {_MOST_DIGITS}")
    columns = tuple(_column(item, path, decimals) for path, item in _listed_entries(block, "columns"))
    rows = tuple(_row(item, block, path) for path, item in _listed_entries(block, "rows"))
    numbers = _check_numbers(block.get("numbers"), len(rows), len(columns))
    return Paper(
        title=str(block["title"]),
        source=str(block.get("source") or ""),
        note=str(block.get("note") or ""),
        columns=columns,
        rows=rows,
        numbers=numbers,
    )


def check_paper(block: Mapping[str, Any]) -> list[Problem]:
    """(config path, what is wrong and what would be right) of a block that `parse` refuses."""
    try:
        parse_paper(block)
    except ConfigurationError as error:
        return [Problem("experiment", str(error))]
    return []


def _listed_entries(block: Mapping[str, Any], name: str) -> list[tuple[str, Any]]:
    items = block.get(name) or []
    if not isinstance(items, list | tuple):
        raise ConfigurationError(f"paper.{name} is {items!r}; it must be a list")
    return [(f"paper.{name}[{index}]", item) for index, item in enumerate(items)]


def _column(item: Any, path: str, decimals: int) -> PaperColumn:
    entry: Mapping[str, Any] = {"label": item} if isinstance(item, str) else _check_label(item, path)
    if unknown := sorted(set(entry) - {"label", "task"}):
        raise ConfigurationError(f"{path}.{unknown[0]} is unknown; a column has label, task")
    return PaperColumn(entry["label"], str(entry.get("task") or entry["label"].lower()), decimals)


def _row(item: Any, block: Mapping[str, Any], path: str) -> PaperRow:
    entry: Mapping[str, Any] = {"label": item} if isinstance(item, str) else _check_label(item, path)
    if unknown := sorted(set(entry) - {"label", "factors", *KEYS}):
        raise ConfigurationError(f"{path}.{unknown[0]} is unknown; a row has label, factors, {', '.join(KEYS)}")
    factors = entry.get("factors") or {}
    if not isinstance(factors, Mapping):
        raise ConfigurationError(f"{path}.factors is {factors!r}; it must be a mapping of factors to labels")
    labels = {str(factor): str(label) for factor, label in factors.items()}
    compared = bool(labels) and block.get("numbers") is not None
    return PaperRow(entry["label"], labels, parse_setting(entry, block, path, required=compared))


def _check_label(item: Any, path: str) -> Mapping[str, Any]:
    if not isinstance(item, Mapping) or not isinstance(item.get("label"), str):
        raise ConfigurationError(f"{path} is {item!r}; it must be a name or a mapping with `label`")
    return item


def _decimals(number: float) -> int:
    exponent = Decimal(repr(number)).normalize().as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def _check_numbers(numbers: Any, rows: int, columns: int) -> tuple[tuple[float | None, ...], ...] | None:
    if numbers is None:
        return None
    if not isinstance(numbers, Sequence) or len(numbers) != rows:
        raise ConfigurationError(f"paper.numbers must be null or a list of {rows} rows, one for each of paper.rows")
    for index, row in enumerate(numbers):
        if not isinstance(row, Sequence) or len(row) != columns:
            raise ConfigurationError(f"paper.numbers[{index}] must be a list of {columns} numbers, as paper.columns")
        for position, number in enumerate(row):
            is_number = isinstance(number, int | float) and not isinstance(number, bool) and math.isfinite(number)
            if number is not None and not is_number:
                raise ConfigurationError(f"paper.numbers[{index}][{position}] is {number!r}, neither a number nor null")
    return tuple(tuple(None if number is None else float(number) for number in row) for row in numbers)


def parse_setting(row: Mapping[str, Any], paper: Mapping[str, Any], path: str, *, required: bool) -> Setting:
    """The setting of a row; what the row does not say, the paper's block says for all of them; a unit none need say.

    Raises:
        ConfigurationError: what neither says, where it is required, or a malformed amount, by its path.
    """
    values = {key: (row.get(key, paper.get(key)), f"{path}.{key}" if key in row else f"paper.{key}") for key in KEYS}
    for key, (value, _) in values.items():
        if value is None and required and key != "unit":
            message = "a paper's number stands beside runs that are like the paper's only"
            raise ConfigurationError(f"{path}.{key} is missing: {message}; write {ANY} where it does not matter")
    return Setting(
        _parse_amount(*values["parameters"], parse_count),
        _parse_amount(*values["vocabulary"], parse_count),
        _parse_budget(*values["budget"]),
        _parse_unit(*values["unit"]),
    )


def short_count(count: float) -> str:
    """A count as papers write it: `32K`, `6.7B`, `33.4K`."""
    return format_count(count).replace(".0", "")


def describe_settings(settings: Sequence[Setting], otherwise: str, *, budget: bool) -> str:
    """Values of several settings, each once; `otherwise` stands for what is None; with `budget` that too.

    The unit is told where it is known.
    """
    parameters = [short_count(each.parameters) if each.parameters else otherwise for each in settings]
    units = [f", unit {each.unit}" if each.unit else "" for each in settings]
    sizes = [short_count(each.vocabulary) if each.vocabulary else otherwise for each in settings]
    vocabularies = [f"{size}{unit}" for size, unit in zip(sizes, units, strict=True)]
    budgets = [str(each.budget or otherwise) for each in settings]
    model = f"{_alternatives(parameters)} parameters with a vocabulary of {_alternatives(vocabularies)}"
    return f"{model} and a budget of {_alternatives(budgets)}" if budget else model


def _alternatives(names: Sequence[str]) -> str:
    """`a`, `a or b`, `a, b or c`; each once."""
    *rest, last = dict.fromkeys(names)
    return f"{', '.join(rest)} or {last}" if rest else last


def _parse_amount(value: Any, path: str, parse: Any) -> int | None:
    try:
        return None if value is None or value == ANY else int(parse(value))
    except ValueError as error:
        raise ConfigurationError(f"{path}: {error}") from error


def _parse_budget(value: Any, path: str) -> PaperBudget | None:
    if value is None or value == ANY:
        return None
    amount, _, unit = str(value).rpartition(" ")
    if unit not in (TOKENS, TEXT):
        raise ConfigurationError(f"{path} is {value!r}; it must be like `100B tokens`, `388GiB text` or `{ANY}`")
    parsed = _parse_amount(amount, path, parse_count if unit == TOKENS else parse_size)
    return None if parsed is None else PaperBudget(parsed, unit)


def _parse_unit(value: Any, path: str) -> str | None:
    if value is None or value == ANY:
        return None
    if value not in UNITS:
        raise ConfigurationError(f"{path} is {value!r}; it must be one of {', '.join(UNITS)} or `{ANY}`")
    return str(value)


def _near(theirs: int | None, ours: int | None, ratio: float) -> bool:
    return theirs is None or (ours is not None and abs(math.log(ours / theirs)) <= math.log(ratio))
