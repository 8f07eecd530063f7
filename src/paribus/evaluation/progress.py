"""How far an evaluation is, in what its user counts: documents, bytes, items."""

from collections.abc import Callable

Progress = Callable[[int], None]
"""Told the number of requests that were just finished."""


def counter(told: Callable[[int, int], None], requests: int, units: int | None = None) -> Progress:
    """Adds up the finished of `requests` and tells their share of `units`; None counts the requests themselves."""
    total, finished = requests if units is None else units, 0

    def report(count: int) -> None:
        nonlocal finished
        finished += count
        told(total * finished // requests, total)

    return report
