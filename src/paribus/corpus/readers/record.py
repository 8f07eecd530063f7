"""What a reader yields: a record, or the reason why the bytes at a position are none."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Fields:
    """Names of the fields that hold the text and, unless records are numbered, the id."""

    text: str
    id: str | None
    setting: str = "corpus.text_field"
    """The field of the configuration that names the text's."""


@dataclass(frozen=True, slots=True)
class Record:
    """One record; `position` counts lines or rows from 1, `id` is None where records are numbered."""

    position: int
    id: str | None
    text: str


@dataclass(frozen=True, slots=True)
class Problem:
    """Why there is no record at `position`; `reason` is a short name to count by, `message` is for people."""

    position: int
    reason: str
    message: str


Item = Record | Problem


def record_of(position: int, row: Mapping[str, Any], fields: Fields) -> Item:
    """The record in a row of named values, or what is wrong with it."""
    text = row.get(fields.text)
    if not isinstance(text, str):
        return _not_text(position, row, fields)
    id = None
    if fields.id is not None:
        value = row.get(fields.id)
        if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
            return _not_an_id(position, row, fields.id)
        id = str(value)
    return checked(Record(position, id, text))


def checked(record: Record) -> Item:
    """The record itself, or a problem where its text is empty or is not Unicode text."""
    if not record.text:
        return Problem(record.position, "empty_text", "the text is empty")
    try:
        record.text.encode()
        (record.id or "").encode()
    except UnicodeEncodeError as error:
        message = f"the text or id has half a surrogate pair at character {error.start}, which UTF-8 cannot express"
        return Problem(record.position, "lone_surrogate", message)
    return record


def _not_text(position: int, row: Mapping[str, Any], fields: Fields) -> Problem:
    name = fields.text
    if name not in row:
        return Problem(position, "no_text_field", f"no field {name!r} ({fields.setting}); it has {_names(row)}")
    message = f"field {name!r} ({fields.setting}) holds {_kind(row[name])}, not a string"
    return Problem(position, "text_not_a_string", message)


def _not_an_id(position: int, row: Mapping[str, Any], name: str) -> Problem:
    if name not in row:
        return Problem(position, "no_id_field", f"no field {name!r} (corpus.id_field); it has {_names(row)}")
    message = f"field {name!r} (corpus.id_field) holds {_kind(row[name])}, not a non-empty string or an integer"
    return Problem(position, "invalid_id", message)


def _names(row: Mapping[str, Any]) -> str:
    names = [repr(name) for name in row]
    return ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "") if names else "no field"


def _kind(value: Any) -> str:
    kinds = {type(None): "null", bool: "a boolean", int: "an integer", float: "a number", list: "a list"}
    return "an empty string" if value == "" else kinds.get(type(value), f"a {type(value).__name__}")
