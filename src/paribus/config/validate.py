"""Conversion of nested plain data to a typed `RunConfig`, with every problem found at once and named by its path."""

import dataclasses
import difflib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, get_args, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError

from paribus.config.fields import NULL_IS_NO_LIMIT
from paribus.config.schema import RunConfig, dataclasses_of, kinds
from paribus.errors import ConfigurationError, Problem

MISSING_VALUE = "???"
LEAST_SIMILARITY = 0.7
"""Ratio of `difflib` from which a known name is suggested."""
_SINGLE_VALUE_ERRORS = ("bool_type", "float_type", "int_type", "literal_error", "string_type", "value_error")
"""Types of pydantic's errors at a field that takes one value and no list."""


def build_run(data: Mapping[str, Any]) -> RunConfig:
    """A `RunConfig` from nested plain data, each value judged by itself; ConfigurationError with all problems."""
    return build_group(RunConfig, data, "")  # type: ignore[no-any-return]


def build_group(cls: type[Any], data: Mapping[str, Any], prefix: str) -> Any:
    """An instance of a configuration class; ConfigurationError with all problems, by paths that begin with `prefix`."""
    problems: list[Problem] = []
    group = _build(cls, data, prefix, problems)
    if problems:
        raise ConfigurationError(*problems)
    return group


def _build(cls: type[Any], data: Mapping[str, Any], prefix: str, problems: list[Problem]) -> Any:
    before = len(problems)
    fields = {field.name: field for field in dataclasses.fields(cls)}
    hints = get_type_hints(cls, include_extras=True)
    problems += [Problem(prefix + str(key), unknown(str(key), list(fields))) for key in data if key not in fields]
    values = {}
    for name, field in fields.items():
        if name not in data or data[name] == MISSING_VALUE:
            if field.default is dataclasses.MISSING or name in data:
                problems.append(Problem(prefix + name, f"is required: {field.metadata['doc']}"))
            continue
        values[name] = _build_value(name, data[name], hints[name], prefix, problems)
    return cls(**values) if len(problems) == before else None


def _build_value(name: str, value: Any, hint: Any, prefix: str, problems: list[Problem]) -> Any:
    classes = dataclasses_of(hint)
    if unfit := _undecodable(value):
        problems.append(Problem(prefix + name, f"{unfit!r} is no text that UTF-8 could hold"))
        return None
    if classes and value is None and type(None) in get_args(hint):
        return None
    if classes:
        return _build_nested(classes, value, prefix + name, problems)
    try:
        return _adapter(hint).validate_python(_lists_to_tuples(value))
    except ValidationError as error:
        for detail in _without_repetition(error.errors(include_url=False)):
            keys = value if isinstance(value, Mapping) else {}
            parts = [part for part in detail["loc"] if isinstance(part, int) or part in keys]
            where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)
            path = prefix + name + where
            infinite = detail["type"] == "finite_number" and detail["input"] > 0
            unlimited = infinite and NULL_IS_NO_LIMIT in getattr(hint, "__metadata__", ())
            remedy = "; null is no limit" if unlimited else _list_remedy(detail, path)
            problems.append(Problem(path, _explain(detail, detail["input"]) + remedy))
        return None


@cache  # a sweep has thousands of values of the same few annotations
def _adapter(hint: Any) -> TypeAdapter[Any]:
    return TypeAdapter(hint, config=ConfigDict(strict=True, allow_inf_nan=False))


def _undecodable(value: Any) -> str | None:
    """The first text of a list or value that UTF-8 cannot hold: it has a surrogate, from undecodable bytes."""
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, str) and any("\ud800" <= character <= "\udfff" for character in item):
            return item
    return None


def _without_repetition(details: Sequence[Any]) -> Sequence[Any]:
    """Details but those that repeat others: that a value is not null either, that a list with a wrong item is short."""
    own = [detail for detail in details if detail["type"] != "none_required"] or details
    inside = {detail["loc"][:length] for detail in own for length in range(len(detail["loc"]))}
    return [detail for detail in own if detail["loc"] not in inside]


def _lists_to_tuples(value: Any) -> Any:
    return tuple(_lists_to_tuples(item) for item in value) if isinstance(value, list) else value


def _build_nested(classes: list[type[Any]], value: Any, path: str, problems: list[Problem]) -> Any:
    """A group, whose class its `kind` selects in the closed registry, or a plain block of keys."""
    registry = kinds(classes)
    if not isinstance(value, Mapping):
        choose = f"; choose one with {path.replace('.', '/')}=..." if registry else ""
        problems.append(Problem(path, f"must be a block of keys, not {value!r}{choose}"))
        return None
    if not registry:
        return _build(classes[0], value, f"{path}.", problems)
    kind = value.get("kind")
    if not isinstance(kind, str) or kind not in registry:
        problems.append(Problem(f"{path}.kind", unknown(str(kind), list(registry))))
        return None
    return _build(registry[kind], value, f"{path}.", problems)


def unknown(name: str, known: Sequence[str]) -> str:
    """Message for a name that is not among the known ones, with the nearest of them."""
    return f"{name!r} is unknown; {did_you_mean(name, known)}known: {', '.join(known)}"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Question for the nearest of the known names, with a space behind it; empty where none is near."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=LEAST_SIMILARITY)
    return f"did you mean {close[0]!r}? " if close else ""


def _list_remedy(detail: Any, path: str) -> str:
    """How to type a list that was given as a text, or a sweep that was given as a list; else empty."""
    value = detail["input"]
    if isinstance(value, tuple) and detail["type"] in _SINGLE_VALUE_ERRORS:
        return f"; values to sweep are parted by commas, without brackets: {path}={','.join(map(str, value))}"
    return f"; a list is typed {path}=[{value}]" if detail["type"] == "tuple_type" and isinstance(value, str) else ""


def _explain(detail: Any, value: Any) -> str:
    message = str(detail["msg"]).removeprefix("Value error, ").replace("Input should", "should")
    message = message.replace("valid tuple", "valid list").replace("Tuple", "a list")
    if detail["type"] == "literal_error":
        known = [part.strip(" '") for part in detail["ctx"]["expected"].replace(" or ", ", ").split(",")]
        return unknown(str(value), known)
    if detail["type"] == "too_short":
        least = detail["ctx"]["min_length"]
        return f"should have {least} {'entry' if least == 1 else 'entries'} or more"
    message = message if repr(value) in message else f"{message}, not {value!r}"
    number = detail["type"] == "string_type" and isinstance(value, int | float)
    return f"{message}: quote what is text and reads as a number, as in field=\"'1e5'\"" if number else message
