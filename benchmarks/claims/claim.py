"""A claim of a paper and what was found of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

HOLDS, DOES_NOT, NOT_SHOWN = "holds", "does not", "not shown here"
NOT_RUN = "not run"


@dataclass(frozen=True)
class Claim:
    """A quantity of which a paper says whether it rises or falls, and where we measure it."""

    paper: str
    where: str
    """Table, figure or section."""
    says: str
    size: str
    """What it prints; empty for nothing."""
    experiment: str
    """Ours."""
    number: str
    """A column of the experiment's table, or a number of `paribus tokens statistics`."""
    sign: int
    """1 where our number rises if the claim holds, -1 where it falls."""
    row: Mapping[str, str] = field(default_factory=dict)
    """Labels of the row that is compared with its baseline."""
    scale: float = 1.0
    """What our number is multiplied by to be shown: 100 for per cent."""
    against: Mapping[str, str] = field(default_factory=dict)
    """Labels of the row that it is compared with; empty for the baseline of the experiment's table."""
    ours: bool = False
    """Whether it is a question of ours, of which the paper says nothing."""
    stands_in: bool = False
    """Whether our number is of something else than the claim, which it so does not judge."""
    note: str = ""
    """What a reader has to know of it, below the table."""

    @property
    def measure(self) -> str:
        """Our number in words."""
        words = self.number.removesuffix("_difference").replace("_", " ")
        return f"{words}, %" if self.scale != 1 else words

    @property
    def place(self) -> str:
        """Table, figure or section as the page has it."""
        return f"{self.where}, our question" if self.ours else self.where

    def notes(self) -> list[str]:
        """Sentences on what was found of it."""
        return [f"{self.where}: {self.note}"] if self.note else []


@dataclass(frozen=True)
class Untrained:
    """A claim that takes more than was spent here, so that nothing says anything of it."""

    paper: str
    where: str
    says: str
    size: str
    experiment: str
    """The file that would show it."""
    takes: str
    """What that would take."""


@dataclass(frozen=True)
class Found:
    """What was measured of a claim."""

    difference: float
    """From the baseline, as shown."""
    interval: tuple[float, float] | None = None
    """95 %; None for what is counted and not sampled."""
    seeds: int = 0
    detectable: float | None = None
    """The smallest true difference that so many seeds and items would show."""


Claimed = tuple[Claim, Found | None]


def marked(claim: Claim, found: Found | None) -> str:
    """A verdict as a cell of the page says it."""
    if found is None:
        return f"{NOT_SHOWN}: {NOT_RUN}"
    result = verdict(claim, found)
    return result if result == NOT_SHOWN else f"**{result}**"


def verdict(claim: Claim, found: Found | None) -> str:
    """Three words for it: an interval that holds 0 shows nothing, and what is counted has no interval."""
    if found is None or claim.stands_in:
        return NOT_SHOWN
    low, high = found.interval or (found.difference, found.difference)
    if low <= 0 <= high:
        return NOT_SHOWN
    return HOLDS if found.difference * claim.sign > 0 else DOES_NOT
