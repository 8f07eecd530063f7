"""Fields of null that a task's text would show as the word `None`, which nobody wrote.

Each text is made with a mark in the place of a record's nulls, as lm-eval makes it: a template that asks whether a
field is null, and does without it, shows no mark. Imports lm_eval: import this module late.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from jinja2 import TemplateError
from lm_eval.utils import env

from paribus.errors import DataError
from paribus.evaluation.borrowed.definition import TEXTS, Definition

_SIGN = "\ue000"
"""A character of private use, which no text has."""
Shows = Callable[[str, Mapping[str, Any]], bool]
"""Whether a text shows what is null in a field of a record."""


class _Mark:
    """What stands in a record for null: it is false and equal to it, and seen where it is written."""

    def __bool__(self) -> bool:
        return False

    def __eq__(self, other: object) -> bool:
        return other is None or isinstance(other, _Mark)

    def __hash__(self) -> int:
        return hash(None)

    def __str__(self) -> str:
        return _SIGN

    __repr__ = __str__


_MARK = _Mark()


def check_nulls(path: Path, records: Iterable[tuple[int, Mapping[str, Any]]], task: Definition, *, shown: bool) -> None:
    """DataError names the line and the field of null that a text of the task's items would have as `None`.

    `records` have the numbers of their lines, and what lm-eval is given. `shown` are those of examples, which may have
    texts of their own. Not where the task's own Python makes its records first (`process_docs`).
    """
    if task.config.get("process_docs"):
        return
    texts = dict(_texts(task, shown=shown))
    for number, record in records:
        for field in (field for field, value in record.items() if _has_null(value)):
            for name, shows in texts.items():
                if shows(field, record):
                    raise DataError(
                        f"{path}, line {number}: {name} of {task.path.name} writes the field {field!r}, which is null "
                        "or has null in it, as the word None; give it, or leave the record out"
                    )


def _texts(task: Definition, *, shown: bool) -> Iterator[tuple[str, Shows]]:
    """The texts of an item, and whether each shows a null; not those that Python makes."""
    for name in TEXTS:
        text = (task.fewshot.get(name) if shown else None) or task.config.get(name)
        if isinstance(text, str):
            yield name, _shows(text)


def _shows(text: str) -> Shows:
    try:
        template = _environment().from_string(text)
    except TemplateError:  # lm-eval says it
        return lambda field, record: field == text

    def shows(field: str, record: Mapping[str, Any]) -> bool:
        if text in record:  # a text may be the name of a field
            return field == text
        try:
            return _SIGN in template.render(**{**record, field: _marked(record[field])})
        except Exception:  # of a template that cannot do with null lm-eval says it
            return False

    return shows


def _environment() -> Any:
    """lm-eval's own, which knows the mark for null."""
    own = env.overlay()
    own.tests = {**env.tests, "none": lambda value: value is None or isinstance(value, _Mark)}
    return own


def _marked(value: Any) -> Any:
    match value:
        case None:
            return _MARK
        case list():
            return [_marked(part) for part in value]
        case dict():
            return {key: _marked(part) for key, part in value.items()}
        case _:
            return value


def _has_null(value: Any) -> bool:
    match value:
        case list():
            return any(map(_has_null, value))
        case dict():
            return any(map(_has_null, value.values()))
        case _:
            return value is None
