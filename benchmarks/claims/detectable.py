"""The smallest true difference that seeds would show, where only means over seeds are known."""

from scipy.stats import t

from claims.claim import Found
from paribus.reporting.significance.crossed import LEVEL
from paribus.reporting.significance.quantile import TWO_SIDED, Quantile


def detectable(error: float, freedom: float) -> float | None:
    """As tables have it, of a difference with this standard error and its degrees of freedom; None without spread."""
    return Quantile(1.0, freedom, freedom, seeds=1.0, rest=0.0).detectable(LEVEL) * error if error else None


def bounds(found: Found) -> tuple[float, float] | None:
    """What is known of it: twice the same number where that was kept.

    Of Welch's interval alone, whose degrees of freedom are not in it, the least and the greatest that these allow: they
    lie between those of the seeds of one row and of both. None where no interval was kept.
    """
    if found.detectable is not None:
        return found.detectable, found.detectable
    if found.interval is None or found.seeds < 2:
        return None
    half = (found.interval[1] - found.interval[0]) / 2
    possible = [
        detectable(half / float(t.ppf(TWO_SIDED, freedom)), freedom)
        for freedom in range(found.seeds - 1, 2 * (found.seeds - 1) + 1)
    ]
    known = [value for value in possible if value is not None]
    return (min(known), max(known)) if known else None
