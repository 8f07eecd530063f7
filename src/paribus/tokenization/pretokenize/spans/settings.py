"""What the search for spans is asked for; checked."""

import math
from dataclasses import dataclass

from paribus.errors import ConfigurationError


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


def _check_integer(name: str, value: int, *, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ConfigurationError(f"pretokenizer.{name}: {value!r}; an integer of at least {least} is needed")
