"""What was probably meant by an override that is none."""

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path

from paribus.config.arms import ARM, CHOSEN
from paribus.config.reference.files import groups, options
from paribus.config.schema import fields_taking

OF_A_PATH: Mapping[str, str] = {
    "corpus": "corpus=files corpus.paths=[{}]",
    "tokenizer": "tokenizer=existing tokenizer.path={}",
}
"""Group -> how a path is typed that was given as its choice."""


def as_option(word: str) -> str | None:
    """`arm=lbpe` of `lbpe`: how the option of a group is chosen; None where no group has it."""
    group = next((name for name in groups() if word in (option.name for option in options(name))), None)
    return group and f"{group}={word}"


def without_a_value(text: str) -> str:
    """What is wrong with an override that has no value, and what the word may stand for."""
    option = as_option(text)
    told = f"that is {option}" if option else "paribus explain lists groups and fields"
    return f"is no override, which is typed NAME=VALUE; {told}"


def block_as_value(path: str, value: str, inside: Sequence[str], beside: Sequence[str]) -> str:
    """What is wrong with a value for a block of the fields `inside`; `beside` are the fields that stand beside it."""
    parent, name = path.rpartition(".")[::2]
    close = difflib.get_close_matches(name, beside, n=1, cutoff=0.75)
    near = f"did you mean {parent and f'{parent}.'}{close[0]}={value}? " if close else ""
    return f"is a block of fields, which has no value; {near}its fields: {', '.join(f'{path}.{one}' for one in inside)}"


def meant(group: str, value: str, options: Sequence[str], arms: Sequence[str]) -> str:
    """How a value is typed that is no choice of a group but an arm, a path, or one of a field of it; else nothing."""
    if group in CHOSEN and value in arms:
        return f"; that is {ARM}={value}"
    if group in OF_A_PATH and ("/" in value or Path(value).suffix):
        return f"; a file is given as {OF_A_PATH[group].format(value)}"
    found = [f"{group}={kind} {group}.{name}={value}" for kind, name in fields_taking(group, value) if kind in options]
    return f"; that is {' or '.join(found)}" if found else ""
