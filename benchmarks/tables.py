"""Markdown tables of measurements."""

import statistics
from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def spread(values: Sequence[float]) -> str:
    """The median with the least and the largest."""
    middle = statistics.median(values)
    digits = 0 if middle >= 100 else 1 if middle >= 10 else 2 if middle >= 1 else 3 if middle >= 0.1 else 4
    return f"{middle:.{digits}f} ({min(values):.{digits}f}-{max(values):.{digits}f})"


def number(value: float) -> str:
    """Two or three digits that mean something."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
