"""What the search for spans is asked for; checked."""

import math
from dataclasses import dataclass
from typing import Literal, get_args

from paribus.errors import ConfigurationError

Information = Literal["shares", "counts"]
Classes = Literal["one", "any"]


@dataclass(frozen=True, kw_only=True)
class SpanSettings:
    """Which n-grams are candidates and how they are scored. Raises ConfigurationError for a value out of range."""

    max_length: int = 4
    """Longest candidate, in characters; at least 2."""
    min_count: int = 2
    """Occurrences a candidate needs. 2 is the smallest number that says anything: an n-gram seen once has no entropy
    on either side, and the largest pointwise mutual information of all."""
    entropy_weight: float = 1.0
    """Lambda, the weight of the smaller branching entropy beside the pointwise mutual information."""
    entropy_only: bool = False
    """Score by the branching entropy alone; lambda then has no effect."""
    information: Information = "shares"
    """PMI(x, y) is log2 p(xy) / (p(x) p(y)) of shares, or log2 f(xy) / (f(x) f(y)) of counts, without the totals: it is
    then lower by the same amount everywhere, and never positive."""
    least_score: float | None = None
    """A span must score more; None takes the best candidate whatever it scores."""
    classes: Classes = "one"
    """Whether a candidate holds characters of one class, never punctuation; or `any` but line ends."""

    def __post_init__(self) -> None:
        _check_integer("max_length", self.max_length, least=2)
        _check_integer("min_count", self.min_count, least=1)
        weight = self.entropy_weight
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight < math.inf:
            raise ConfigurationError(
                f"pretokenizer.entropy_weight: {weight!r}; a finite number of at least 0 is needed"
            )
        if not isinstance(self.entropy_only, bool):
            raise ConfigurationError(f"pretokenizer.entropy_only: {self.entropy_only!r} is neither true nor false")
        least = self.least_score
        if least is not None and (isinstance(least, bool) or not isinstance(least, int | float) or math.isnan(least)):
            raise ConfigurationError(f"pretokenizer.least_score: {least!r} is neither a number nor null")
        for name, choices in (("information", Information), ("classes", Classes)):
            if getattr(self, name) not in get_args(choices):
                known = " or ".join(get_args(choices))
                raise ConfigurationError(f"pretokenizer.{name}: {getattr(self, name)!r}; it must be {known}")


def _check_integer(name: str, value: int, *, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ConfigurationError(f"pretokenizer.{name}: {value!r}; an integer of at least {least} is needed")
