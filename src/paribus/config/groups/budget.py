"""Group `budget`: what is equal between runs."""

from typing import Literal

from paribus.config.declare import group, identity
from paribus.config.units import Count, Size


@group
class EqualTokensBudget:
    """Every run reads the same number of tokens."""

    kind: Literal["equal_tokens"] = identity("equal_tokens", doc="Stop after a number of tokens.")
    tokens: Count = identity(
        doc="Tokens to predict, rounded up to whole global batches; padding is none of them (papers: 100B)."
    )


@group
class EqualTextBudget:
    """Every run reads the same number of bytes of source text."""

    kind: Literal["equal_text"] = identity("equal_text", doc="Stop after a number of bytes of source text.")
    text: Size = identity(doc="UTF-8 bytes of source text, rounded up to whole global batches (papers: 388GiB).")


BudgetConfig = EqualTokensBudget | EqualTextBudget
