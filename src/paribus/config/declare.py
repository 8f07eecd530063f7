"""How a configuration group declares its fields.

Every field says whether it is *identity* (it changes what is computed, so it is part of artefact keys) or
*execution* (it changes only how or where), and carries its documentation. A field that says neither is an error
when the class is defined.
"""

import dataclasses
from typing import Any, TypeVar, dataclass_transform

IDENTITY, EXECUTION = "identity", "execution"
T = TypeVar("T")


def identity(default: Any = dataclasses.MISSING, *, doc: str) -> Any:
    """A field that changes what is computed. `doc` is one sentence: meaning, unit, paper's value."""
    return dataclasses.field(default=default, metadata={"role": IDENTITY, "doc": doc})


def execution(default: Any = dataclasses.MISSING, *, doc: str) -> Any:
    """A field that changes only how or where something is computed."""
    return dataclasses.field(default=default, metadata={"role": EXECUTION, "doc": doc})


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(identity, execution))
def group(cls: type[T]) -> type[T]:
    """Make `cls` a frozen, keyword-only dataclass and check that every field declares its role."""
    made = dataclasses.dataclass(frozen=True, kw_only=True)(cls)
    for field in dataclasses.fields(made):  # type: ignore[arg-type]
        if field.metadata.get("role") not in (IDENTITY, EXECUTION):
            raise TypeError(f"{cls.__name__}.{field.name} must be declared with identity(...) or execution(...)")
    return made
