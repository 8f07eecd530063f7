"""Hours with the error they are known with."""

from collections.abc import Iterable
from dataclasses import dataclass

from paribus.config.units import format_hours

SECONDS = 3600


@dataclass(frozen=True)
class Hours:
    """A number of hours; `error` is the relative half-width that was measured, None where nothing says."""

    value: float
    error: float | None = None

    def __str__(self) -> str:
        spread = "" if self.error is None else f" ± {self.error:.0%}".replace("%", " %")
        return f"{format_hours(self.value)}{spread}"


def total(parts: Iterable[Hours]) -> Hours:
    """The sum. Errors of one device do not cancel out, so they are added; those not known are left out."""
    listed = list(parts)
    value = sum(part.value for part in listed)
    known = [part.value * part.error for part in listed if part.error is not None]
    return Hours(value, sum(known) / value if known and value else None)
