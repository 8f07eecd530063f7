"""What was probably meant by an override that is none."""

from collections.abc import Sequence

from paribus.config.arms import ARM, CHOSEN
from paribus.config.reference.files import groups, options
from paribus.config.schema import fields_taking


def without_a_value(text: str) -> str:
    """What is wrong with an override that has no value, and what the word may stand for."""
    group = next((name for name in groups() if text in (option.name for option in options(name))), None)
    told = f"that is {group}={text}" if group else "paribus explain lists groups and fields"
    return f"is no override, which is typed NAME=VALUE; {told}"


def meant(group: str, value: str, options: Sequence[str], arms: Sequence[str]) -> str:
    """How a value is typed that is no choice of a group but an arm, or one of a field of the group; else nothing."""
    if group in CHOSEN and value in arms:
        return f"; that is {ARM}={value}"
    found = [f"{group}={kind} {group}.{name}={value}" for kind, name in fields_taking(group, value) if kind in options]
    return f"; that is {' or '.join(found)}" if found else ""
