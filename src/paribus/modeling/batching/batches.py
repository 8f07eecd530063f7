"""Batches by the tokens that they take when they are padded."""

from collections.abc import Callable, Sequence
from typing import TypeVar

Item = TypeVar("Item")


def batches(items: Sequence[Item], length: Callable[[Item], int], tokens: int) -> list[Sequence[Item]]:
    """Consecutive `items`, the longest first, that take at most `tokens` when each is padded to the first, or one."""
    result, start = [], 0
    while start < len(items):
        rows = max(1, tokens // max(1, length(items[start])))
        result.append(items[start : start + rows])
        start += rows
    return result
