"""Group `budget`: what is equal between runs."""

from typing import Literal

from paribus.config.declare import execution, group, identity
from paribus.config.groups.types import Limit
from paribus.config.units import Count, Size

_MAX_EPOCHS = (
    "Most epochs: a run whose budget takes more is refused before its first step, and 1 refuses any repetition; null "
    "repeats the text as often as needed."
)


@group
class EqualTokensBudget:
    """Every run reads the same number of tokens."""

    kind: Literal["equal_tokens"] = identity("equal_tokens", doc="Stop after a number of tokens.")
    tokens: Count = identity(
        doc="Tokens to predict, rounded up to whole global batches; padding is none of them (papers: 100B)."
    )
    max_epochs: Limit = execution(None, doc=_MAX_EPOCHS)


@group
class EqualTextBudget:
    """Every run reads the same number of bytes of source text."""

    kind: Literal["equal_text"] = identity("equal_text", doc="Stop after a number of bytes of source text.")
    text: Size = identity(doc="UTF-8 bytes of source text, rounded up to whole global batches (papers: 388GiB).")
    max_epochs: Limit = execution(None, doc=_MAX_EPOCHS)


@group
class EqualFlopsBudget:
    """Every run computes the same number of FLOPs, so a larger vocabulary or model trains on fewer tokens."""

    kind: Literal["equal_flops"] = identity("equal_flops", doc="Stop after a number of training FLOPs.")
    flops: Count = identity(
        doc="Training FLOPs (6 N + 12 layers x width x context length a position, padding included), rounded up to "
        "whole global batches: 3e19."
    )
    max_epochs: Limit = execution(None, doc=_MAX_EPOCHS)


@group
class EqualStepsBudget:
    """Every run makes the same number of optimizer steps."""

    kind: Literal["equal_steps"] = identity("equal_steps", doc="Stop after a number of optimizer steps.")
    steps: Count = identity(doc="Optimizer steps, each over one global batch: 20K.")
    max_epochs: Limit = execution(None, doc=_MAX_EPOCHS)


BudgetConfig = EqualTokensBudget | EqualTextBudget | EqualFlopsBudget | EqualStepsBudget


def amount_of(budget: BudgetConfig) -> int:
    """How much, in the unit of its kind."""
    return int(getattr(budget, unit_of(budget)))


def unit_of(budget: BudgetConfig) -> str:
    """The field that says how much: tokens, text, flops or steps."""
    return budget.kind.removeprefix("equal_")


def amount_path(budget: BudgetConfig) -> str:
    """The path of the field that says how much."""
    return f"budget.{unit_of(budget)}"
