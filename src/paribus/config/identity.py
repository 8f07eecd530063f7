"""The part of a configuration that decides what is computed, as canonical JSON, and the keys made from it.

Nothing is hashed by `repr` or pickle: a value without a stable JSON form raises.
"""

import dataclasses
import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from paribus.config.fields import IDENTITY


def plain(value: Any, *, only_identity: bool) -> Any:
    """`value` as JSON-compatible data; dataclasses become objects, of their identity fields only if asked.

    Raises TypeError for a value without a stable serialization (sets, bytes, objects, infinities).
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [f for f in dataclasses.fields(value) if not only_identity or f.metadata.get("role") == IDENTITY]
        return {f.name: plain(getattr(value, f.name), only_identity=only_identity) for f in fields}
    if isinstance(value, dict):
        return {_string(key): plain(item, only_identity=only_identity) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, only_identity=only_identity) for item in value]
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    raise TypeError(f"{value!r} of type {type(value).__name__} has no stable serialization")


def _string(key: Any) -> str:
    if not isinstance(key, str):
        raise TypeError(f"the key {key!r} is not a string")
    return key


def identity(value: Any) -> Any:
    """The identity fields of a configuration, nested, as JSON-compatible data."""
    return plain(value, only_identity=True)


def to_plain(value: Any) -> Any:
    """All fields of a configuration, nested, as JSON-compatible data."""
    return plain(value, only_identity=False)


def chosen(config: Any, path: str) -> str | None:
    """The value that a configuration has at a path, of a group its kind; None where there is no such field or kind."""
    value = to_plain(config)
    for part in path.split("."):
        if not isinstance(value, dict) or part not in value:
            return None
        value = value[part]
    if isinstance(value, dict):
        return value.get("kind")
    return str(value)


def canonical(value: Any) -> str:
    """The one JSON text of a value: sorted keys, no spaces, UTF-8."""
    return json.dumps(identity(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(value: Any) -> str:
    """SHA-256 over the canonical JSON of a value, in hexadecimal."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """(dotted path, value) of what nested data holds; lists and empty mappings are values."""
    if not isinstance(value, Mapping) or not value:
        yield path, value
        return
    for key, item in value.items():
        yield from leaves(item, f"{path}.{key}" if path else str(key))
