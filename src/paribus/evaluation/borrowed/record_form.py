"""The one form that the records of a borrowed task have, and the line that has another.

`datasets` makes a table of records: what one lacks becomes null, which lm-eval writes into a prompt as `None`.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, TemplateSyntaxError, meta

from paribus.errors import DataError
from paribus.evaluation.borrowed.definition import TEXTS, Definition

Lines = Sequence[tuple[int, Mapping[str, Any]]]
"""Each record with the number of its line."""


def check_fields(path: Path, lines: Lines, task: Definition) -> None:
    """DataError names a line that lacks a field which the task's texts are made of and other lines have.

    Not where the task's own Python makes its records first (`process_docs`).
    """
    if task.config.get("process_docs"):
        return
    first = {field: number for number, record in reversed(lines) for field in record}
    used = {field: text for text in reversed(TEXTS) for field in _fields(task.config.get(text), first)}
    for number, record in lines:
        for field, text in used.items():
            if field not in record:
                raise DataError(
                    f"{path}, line {number}: no field {field!r}, of which {text} of {task.path.name} makes the "
                    f"item and which line {first[field]} has; give it, or null where the task's text does without it"
                )


def unlike(lines: Lines) -> str:
    """Of records that make no table the first line whose field is of another kind, in words; "" where none is."""
    first: dict[str, tuple[int, str]] = {}
    for number, record in lines:
        for field, value in record.items():
            if kind := _kind(value):
                before, expected = first.setdefault(field, (number, kind))
                if kind != expected:
                    return f", line {number}: the field {field!r} is {kind}, and {expected} in line {before}"
    return ""


def _fields(template: Any, known: Mapping[str, int]) -> Iterator[str]:
    """The fields that a text of the YAML names: one by its name, or those of a template."""
    if isinstance(template, list):
        for part in template:
            yield from _fields(part, known)
    elif isinstance(template, str) and template in known:
        yield template
    elif isinstance(template, str):
        try:
            yield from sorted(
                meta.find_undeclared_variables(Environment(autoescape=False).parse(template)) & set(known)
            )
        except TemplateSyntaxError:
            return  # lm-eval says it


def _kind(value: Any) -> str:
    """What `datasets` wants to be alike in all records; "" for null and an empty list, which go with all."""
    match value:
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case list():
            kinds = sorted({kind for part in value if (kind := _kind(part))})
            return f"a list of {' and '.join(kinds)}" if kinds else ""
        case dict():
            return "an object"
        case _:
            return ""
