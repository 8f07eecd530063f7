"""What a benchmark is: where its records lie and how one becomes a multiple-choice item."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from paribus.errors import DataError

Record = Mapping[str, Any]
Question = tuple[str, list[str], int]
"""Prompt, choices, index of the right one."""


@dataclass(frozen=True)
class Benchmark:
    """A multiple-choice benchmark read from `<data>/<name>/<split>.jsonl[.gz]`."""

    name: str
    split: str
    """Split that is scored, as lm-eval does: test where its labels are public, else validation."""
    question: Callable[[Record], Question]
    """Prompt as in lm-eval's built-in task. Raises DataError at a record that is not of the benchmark's schema."""
    source: str
    """What the benchmark is and where its prompt comes from."""
    target_delimiter: str = " "
    """Between prompt and choice."""


def text(record: Record, field: str) -> str:
    """A field that must be a string with something in it."""
    value = _field(record, field)
    if not isinstance(value, str) or not value.strip():
        raise DataError(f"field `{field}` must be text, not {value!r}")
    return value


def texts(record: Record, field: str) -> list[str]:
    """A field that must be a list of at least two non-empty strings."""
    value = _field(record, field)
    if not isinstance(value, list) or len(value) < 2 or not all(isinstance(c, str) and c.strip() for c in value):
        raise DataError(f"field `{field}` must be a list of two or more texts, not {value!r}")
    return list(value)


def index(record: Record, field: str, choices: list[str]) -> int:
    """A field that must be the index of one of `choices`."""
    value = _field(record, field)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < len(choices):
        raise DataError(f"field `{field}` must be an index from 0 to {len(choices) - 1}, not {value!r}")
    return value


def _field(record: Record, field: str) -> Any:
    if field not in record:
        raise DataError(f"field `{field}` is missing; the record has {', '.join(sorted(record)) or 'no fields'}")
    return record[field]
