"""What the models of a paper's row were trained with, and which of our runs are alike."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from paribus.config.units import format_size, parse_count, parse_size
from paribus.errors import ConfigurationError

if TYPE_CHECKING:
    from paribus.reporting.table.frame import RunRecord

ANY = "any"
KEYS = ("parameters", "vocabulary", "budget", "unit")
UNITS = ("byte", "character")
"""Of which tokens are made, as `tokenizer.unit` has them."""
TOKENS, TEXT = "tokens", "text"
_BUDGETS = {"equal_tokens": TOKENS, "equal_text": TEXT}
_SAME_SIZE = 1.5
"""Ratio of parameters up to which models are of one size: vocabularies of 32K and 128K differ by as much."""
_SAME_AMOUNT = 1.05
"""Ratio up to which vocabularies and budgets are equal: 32K may be 32,000 or 32,768."""
_COUNTS = (("B", 10**9), ("M", 10**6), ("K", 10**3))


@dataclass(frozen=True)
class PaperBudget:
    """An amount of `tokens`, or of bytes of `text`."""

    amount: int
    unit: str

    def __str__(self) -> str:
        if self.unit == TEXT:
            return f"{format_size(self.amount).replace('.0 ', ' ')} of text"
        return f"{short(self.amount)} tokens"


@dataclass(frozen=True)
class Setting:
    """Parameters, vocabulary size, budget and unit; None where it does not matter, or is not known of a run."""

    parameters: int | None = None
    vocabulary: int | None = None
    budget: PaperBudget | None = None
    unit: str | None = None

    @classmethod
    def of(cls, run: "RunRecord") -> "Setting":
        """Of one of our runs: its vocabulary as it came out, which may be smaller than was asked for, and its budget.

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
        """Whether one of our runs is like this row of a paper."""
        same = self.budget is None or (ours.budget is not None and ours.budget.unit == self.budget.unit)
        amounts = [budget.amount if budget else None for budget in (self.budget, ours.budget)]
        return (
            same
            and self.unit in (None, ours.unit)
            and _near(self.parameters, ours.parameters, _SAME_SIZE)
            and _near(self.vocabulary, ours.vocabulary, _SAME_AMOUNT)
            and _near(amounts[0], amounts[1], _SAME_AMOUNT)
        )


def parse_setting(row: Mapping[str, Any], paper: Mapping[str, Any], path: str, *, required: bool) -> Setting:
    """The setting of a row; what the row does not say, the paper's block says for all of them; a unit none need say.

    Raises:
        ConfigurationError: what neither says, where it is required, or a malformed amount, by its path.
    """
    said = {key: (row.get(key, paper.get(key)), f"{path}.{key}" if key in row else f"paper.{key}") for key in KEYS}
    for key, (value, _) in said.items():
        if value is None and required and key != "unit":
            message = "a paper's number stands beside runs that are like the paper's only"
            raise ConfigurationError(f"{path}.{key} is missing: {message}; write {ANY} where it does not matter")
    return Setting(
        _amount(*said["parameters"], parse_count),
        _amount(*said["vocabulary"], parse_count),
        _budget(*said["budget"]),
        _unit(*said["unit"]),
    )


def short(count: float) -> str:
    """A count as papers write it: `32K`, `6.7B`, `33.4K`."""
    for unit, scale in _COUNTS:
        if count >= scale:
            return f"{count / scale:.1f}".removesuffix(".0") + unit
    return f"{count:.0f}"


def described(settings: Sequence[Setting], otherwise: str, *, budget: bool) -> str:
    """What several settings have, each value once; `otherwise` stands for what is None; with `budget` that too.

    The unit is told where it is known.
    """
    parameters = [short(each.parameters) if each.parameters else otherwise for each in settings]
    units = [f", unit {each.unit}" if each.unit else "" for each in settings]
    sizes = [short(each.vocabulary) if each.vocabulary else otherwise for each in settings]
    vocabularies = [f"{size}{unit}" for size, unit in zip(sizes, units, strict=True)]
    budgets = [str(each.budget or otherwise) for each in settings]
    model = f"{_listed(parameters)} parameters with a vocabulary of {_listed(vocabularies)}"
    return f"{model} and a budget of {_listed(budgets)}" if budget else model


def _listed(names: Sequence[str]) -> str:
    """`a`, `a or b`, `a, b or c`; each once."""
    *rest, last = dict.fromkeys(names)
    return f"{', '.join(rest)} or {last}" if rest else last


def _amount(value: Any, path: str, parse: Any) -> int | None:
    try:
        return None if value is None or value == ANY else int(parse(value))
    except ValueError as error:
        raise ConfigurationError(f"{path}: {error}") from error


def _budget(value: Any, path: str) -> PaperBudget | None:
    if value is None or value == ANY:
        return None
    amount, _, unit = str(value).rpartition(" ")
    if unit not in (TOKENS, TEXT):
        raise ConfigurationError(f"{path} is {value!r}; it must be like `100B tokens`, `388GiB text` or `{ANY}`")
    parsed = _amount(amount, path, parse_count if unit == TOKENS else parse_size)
    return None if parsed is None else PaperBudget(parsed, unit)


def _unit(value: Any, path: str) -> str | None:
    if value is None or value == ANY:
        return None
    if value not in UNITS:
        raise ConfigurationError(f"{path} is {value!r}; it must be one of {', '.join(UNITS)} or `{ANY}`")
    return str(value)


def _near(wanted: int | None, ours: int | None, ratio: float) -> bool:
    return wanted is None or (ours is not None and abs(math.log(ours / wanted)) <= math.log(ratio))
