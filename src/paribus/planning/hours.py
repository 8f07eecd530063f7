"""Hours with the error they are known with, and the wall time of trainings on several devices."""

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


def devices_of_training(global_batch: int, devices: int) -> int:
    """The most of `devices` that one training can use: each takes as many contexts of the global batch."""
    return max(number for number in range(1, min(global_batch, devices) + 1) if global_batch % number == 0)


def wall_hours(trainings: Iterable[tuple[float, int]], devices: int) -> float:
    """Hours until all trainings, (device-hours, global batch) of each, are done on `devices` devices.

    The longest goes first and each begins as soon as enough devices are free. Data parallelism is taken to lose nothing
    beyond what the device-hours already have.
    """
    used = [(hours / share, share) for hours, batch in trainings for share in [devices_of_training(batch, devices)]]
    free = [0.0] * devices
    for hours, share in sorted(used, reverse=True):
        free.sort()
        free[:share] = [free[share - 1] + hours] * share
    return max(free)
