"""What a benchmark is: where its records lie and how one becomes an item."""

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from paribus.errors import DataError
from paribus.evaluation.tasks.items import AnyItem

Record = Mapping[str, Any]
Reader = Callable[[str, Record], AnyItem]
"""From an item's name and a record to the item; DataError at a record that is not of the benchmark's schema."""


@dataclass(frozen=True)
class BenchmarkPrompt:
    """How the texts of a task are put together, and where they come from."""

    source: str
    """What the items are and where their prompt comes from."""
    target_delimiter: str = " "
    """Between prompt and answer."""
    fewshot_delimiter: str = "\n\n"
    """After each example."""
    description: str = ""
    """Before everything."""


@dataclass(frozen=True)
class Hub:
    """A data set of the Hugging Face hub whose splits are called as ours."""

    path: str
    """owner/name, as in lm-eval's own task."""
    name: str | None = None
    """The data set's configuration."""
    train: bool = True
    """Whether there is a training split, which is fetched too."""
    train_path: str | None = None
    """owner/name of the data set that has it, where that is another one."""
    examples: int | None = None
    """How many records at its begin, which must be mixed, are fetched where it is very large; None for all of it."""
    files: str | None = None
    """Pattern of the files of a `{split}`, where the others are too large to be fetched beside it."""


@dataclass(frozen=True)
class Generation:
    """Where a written answer ends, and how it is compared with the accepted ones."""

    until: tuple[str, ...]
    """Stop strings."""
    measure: Literal["lm_eval", "squad", "drop"]
    """lm_eval: its exact match alone; squad, drop: exact match and F1 of the official scripts (`answers.py`)."""
    exact_match: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    """Arguments of lm-eval's exact match."""
    max_tokens: int = 64
    """Largest number of tokens; answers are a few words."""


@dataclass(frozen=True)
class Benchmark:
    """A benchmark read from `<data>/<directory>/<split>.jsonl[.gz]`."""

    name: str
    split: str
    """Split that is scored, as lm-eval does: test where its labels are public, else validation."""
    item: Reader
    """Prompt as in lm-eval's built-in task."""
    prompt: BenchmarkPrompt
    hub: Hub | None = None
    """Where else the records are; None where no hub data set has them in a form that is read here."""
    generation: Generation | None = None
    """For benchmarks whose answer is written."""
    parent: str | None = None
    """Directory, where it is not the name."""
    also: tuple[str, ...] = ()
    """Metrics of lm-eval's that its choices have beside accuracy."""

    @property
    def directory(self) -> str:
        """Name of the directory that holds its files."""
        return self.parent or self.name


def text(record: Record, field: str) -> str:
    """A field that must be a string with something in it."""
    value = entry(record, field)
    if not isinstance(value, str) or not value.strip():
        raise DataError(f"field `{field}` must be text, not {value!r}")
    return value


def texts(record: Record, field: str, least: int = 2) -> tuple[str, ...]:
    """A field that must be a list of at least `least` non-empty strings."""
    value = entry(record, field)
    if not isinstance(value, list) or len(value) < least or not all(isinstance(c, str) and c.strip() for c in value):
        number = {1: "one or more texts", 2: "two or more texts"}.get(least, f"{least} or more texts")
        raise DataError(f"field `{field}` must be a list of {number}, not {value!r}")
    return tuple(value)


def answers(record: Record, field: str) -> tuple[tuple[str], ...]:
    """Accepted answers of one part each, from a field that must be a list of one or more non-empty strings."""
    return tuple((answer,) for answer in texts(record, field, least=1))


def index(record: Record, field: str, choices: tuple[str, ...], first: int = 0) -> int:
    """A field that must be the number of one of `choices`, counted from `first`; its index from 0."""
    value = entry(record, field)
    number = int(value) if isinstance(value, str) and value.strip().isdecimal() else value
    last = first + len(choices) - 1
    if isinstance(number, bool) or not isinstance(number, int) or not first <= number <= last:
        raise DataError(f"field `{field}` must be an index from {first} to {last}, not {value!r}")
    return number - first


def entry(record: Record, field: str) -> Any:
    """A field that must be there."""
    if field not in record:
        raise DataError(f"field `{field}` is missing; the record has {', '.join(sorted(record)) or 'no fields'}")
    return record[field]


def lettered(record: Record) -> tuple[tuple[str, ...], int]:
    """Choices and the index of the right one from `choices` (text and label lists) and `answerKey` (a label)."""
    block = entry(record, "choices")
    if not isinstance(block, Mapping):
        raise DataError(f"field `choices` must hold the lists text and label, not {block!r}")
    choices, labels = texts(block, "text"), texts(block, "label")
    answer = text(record, "answerKey").strip()
    if len(labels) != len(choices) or answer not in labels:
        raise DataError(f"field `answerKey` must be one of {len(choices)} labels {list(labels)}, not {answer!r}")
    return choices, labels.index(answer)


def string(record: Record, field: str) -> str:
    """A field that must be a string, which may be empty."""
    value = entry(record, field)
    if not isinstance(value, str):
        raise DataError(f"field `{field}` must be text, not {value!r}")
    return value


def literal(record: Record, field: str) -> Any:
    """A field that may be written as a Python literal in a string, as some hub data sets have lists."""
    value = entry(record, field)
    if not isinstance(value, str):
        return value
    try:
        return ast.literal_eval(value)
    except (ValueError, SyntaxError) as error:
        raise DataError(f"field `{field}` must be a list, not {value!r}") from error
