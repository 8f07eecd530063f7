"""A claim of a paper, what was measured of it, and the verdict."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.stats import t

from paribus.reporting.significance import LEVEL, TWO_SIDED, Quantile

HOLDS, DOES_NOT, NOT_SHOWN, NOT_RUN = "holds", "does not hold", "not shown here", "not run"
OUTSIDE = "outside this design"


@dataclass(frozen=True)
class Claim:
    """A paper's claim that a quantity rises or falls, and the number of ours that tests it; see `claims.yaml`."""

    paper: str
    where: str
    says: str
    size: str
    """The paper's effect with its unit, as text."""
    experiment: str
    number: str = ""
    label: str = ""
    sign: int = 0
    row: Mapping[str, str] = field(default_factory=dict)
    scale: float = 1.0
    against: Mapping[str, str] = field(default_factory=dict)
    ours: bool = False
    takes: str = ""
    outside: bool = False
    """True if our design cannot answer, whatever the number."""

    @property
    def measure(self) -> str:
        """Our number in words."""
        words = self.label or re.sub("_difference$", "", self.number).replace("_", " ")
        return f"{words}, %" if self.scale != 1 else words

    @property
    def place(self) -> str:
        """Table, figure or section as the page has it."""
        return f"{self.where}, our question" if self.ours else self.where


@dataclass(frozen=True)
class Measurement:
    """A difference from the baseline, in the unit of the page."""

    difference: float
    interval: tuple[float, float] | None = None
    """95 %, of this number alone; None for one that no other text or seed would change."""
    p_value: float | None = None
    """Two-sided, of this number alone; None where it was not kept."""
    freedom: float | None = None
    """Satterthwaite's degrees of freedom of the variance of `difference`."""
    detectable: float | None = None
    """The smallest true difference that a test of this number alone finds at 5 % with a probability of 80 %."""
    seeds: int = 0
    """Seeds that both rows have; 0 for statistics of tokens."""
    trained_by: str = ""
    """Commits of the code that trained the models."""
    read_by: str = ""
    """Commit of the code that read or counted it, with a digest of uncommitted changes."""


Measured = tuple[Claim, Measurement | None]


@dataclass(frozen=True)
class JudgedClaim:
    """A claim with its verdict among those of a page."""

    claim: Claim
    measurement: Measurement | None
    p_adjusted: float | None = None
    """By Holm over all tests of the page; None for what is not tested."""

    @property
    def verdict(self) -> str:
        """`holds` or `does not hold` where the adjusted p-value is below 0.05."""
        if self.claim.outside:
            return OUTSIDE
        if self.measurement is None or self.p_adjusted is None:
            return NOT_RUN
        if self.p_adjusted >= LEVEL:
            return NOT_SHOWN
        return HOLDS if self.measurement.difference * self.claim.sign > 0 else DOES_NOT


def judge_claims(measured: Sequence[Measured]) -> list[JudgedClaim]:
    """Verdicts of a page; claims outside its design are not tested, and are not in the family of Holm's adjustment."""
    p_values = [None if claim.outside or one is None else one.p_value for claim, one in measured]
    adjusted = iter(holm([value for value in p_values if value is not None]))
    return [
        JudgedClaim(claim, one, None if value is None else next(adjusted))
        for (claim, one), value in zip(measured, p_values, strict=True)
    ]


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's (1979) adjusted p-values, in the order given: valid for any dependence between the tests."""
    values = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(values)
    # The i-th smallest of m times m - i + 1, and never less than one before it.
    raised = np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1)) if len(values) else values
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(raised, 1.0)
    return [float(value) for value in adjusted]


def by_student(difference: float, error: float, freedom: float) -> Measurement:
    """Judge a difference by Student's t from its standard error, which is above 0, and its degrees of freedom."""
    half = float(t.ppf(TWO_SIDED, freedom)) * error
    return Measurement(
        difference,
        interval=(difference - half, difference + half),
        p_value=2 * float(t.sf(abs(difference) / error, freedom)),
        freedom=freedom,
        detectable=Quantile(1.0, freedom, freedom, seeds=1.0, rest=0.0).detectable(LEVEL) * error,
    )
