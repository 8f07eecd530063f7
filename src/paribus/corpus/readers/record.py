"""What a reader yields: a record, or the reason why the bytes at a position are none."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Fields:
    """Names of the fields that hold the text, the id unless records are numbered, and the group where there is one."""

    text: str
    id: str | None
    setting: str = "corpus.text_field"
    """The field of the configuration that names the text's."""
    group: str | None = None

    def named(self) -> list[tuple[str, str]]:
        """Each field's name, and the field of the configuration that names it."""
        named = ((self.text, self.setting), (self.id, "corpus.id_field"), (self.group, "corpus.group_field"))
        return [(name, setting) for name, setting in named if name is not None]


@dataclass(frozen=True, slots=True)
class Record:
    """One record; `position` counts lines or rows from 1, `id` is None where records are numbered.

    `group` is what the record is a piece of, None where it is by itself.
    """

    position: int
    id: str | None
    text: str
    group: str | None = None


@dataclass(frozen=True, slots=True)
class RecordProblem:
    """Why there is no record at `position`; `reason` is a short name to count by, `message` is for people."""

    position: int
    reason: str
    message: str


Item = Record | RecordProblem


def record_of(position: int, row: Mapping[str, Any], fields: Fields) -> Item:
    """The record in a row of named values, or what is wrong with it."""
    text = row.get(fields.text)
    if not isinstance(text, str):
        return _not_text(position, row, fields)
    for name, setting, what in ((fields.id, "corpus.id_field", "id"), (fields.group, "corpus.group_field", "group")):
        if name is not None and not _is_a_name(row.get(name)):
            return _not_a_name(position, row, name, setting, what)
    id, group = (None if name is None else str(row[name]) for name in (fields.id, fields.group))
    return checked(Record(position, id, text, group))


def checked(record: Record) -> Item:
    """The record itself, or a problem where its text is empty or is not Unicode text."""
    if not record.text:
        return RecordProblem(record.position, "empty_text", "the text is empty")
    try:
        record.text.encode()
        (record.id or "").encode()
        (record.group or "").encode()
    except UnicodeEncodeError as error:
        message = (
            f"the text, id or group has half a surrogate pair at character {error.start}, which UTF-8 cannot express"
        )
        return RecordProblem(record.position, "lone_surrogate", message)
    return record


def _not_text(position: int, row: Mapping[str, Any], fields: Fields) -> RecordProblem:
    name = fields.text
    if name not in row:
        return RecordProblem(position, "no_text_field", f"no field {name!r} ({fields.setting}); it has {_names(row)}")
    message = f"field {name!r} ({fields.setting}) holds {_kind(row[name])}, not a string"
    return RecordProblem(position, "text_not_a_string", message)


def _is_a_name(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool) and value != ""


def _not_a_name(position: int, row: Mapping[str, Any], name: str, setting: str, what: str) -> RecordProblem:
    if name not in row:
        return RecordProblem(position, f"no_{what}_field", f"no field {name!r} ({setting}); it has {_names(row)}")
    message = f"field {name!r} ({setting}) holds {_kind(row[name])}, not a non-empty string or an integer"
    return RecordProblem(position, f"invalid_{what}", message)


def _names(row: Mapping[str, Any]) -> str:
    names = [repr(name) for name in row]
    return ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "") if names else "no field"


def _kind(value: Any) -> str:
    kinds = {type(None): "null", bool: "a boolean", int: "an integer", float: "a number", list: "a list"}
    return "an empty string" if value == "" else kinds.get(type(value), f"a {type(value).__name__}")
