"""Declaration of configuration fields: their documentation, the types that groups share, and names that people give."""

import dataclasses
import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar, dataclass_transform

from annotated_types import Ge, Gt, Le, Lt, MinLen
from pydantic import AfterValidator, Field

IDENTITY, EXECUTION = "identity", "execution"
T = TypeVar("T")
Positive = Annotated[int, Gt(0)]
NonNegative = Annotated[int, Ge(0)]
Seed = Annotated[int, Ge(0), Lt(2**63)]
"""A seed that fits into one signed word of a kernel."""
NonNegativeReal = Annotated[float, Ge(0)]
Probability = Annotated[float, Ge(0), Lt(1)]
PositiveFloat = Annotated[float, Gt(0)]
NULL_IS_NO_LIMIT = "null is no limit"
"""Marks the fields of which a message may say so."""
Limit = Annotated[PositiveFloat | None, NULL_IS_NO_LIMIT]
Fraction = Annotated[float, Gt(0), Lt(1)]
PruneShare = Annotated[float, Ge(0.05), Le(0.5)]
"""A share that the Unigram trainer accepts."""
UpToOne = Annotated[float, Ge(0), Le(1)]
Cosine = Annotated[float, Gt(0), Le(1)]
Strings = Annotated[tuple[str, ...], Field(strict=False), MinLen(1)]
LONGEST_PART = 255
"""Bytes of a file's name, the limit of Linux' file systems."""
LONGEST_NAME = 200
_DEVICE = re.compile(r"auto|cpu|cuda(:[0-9]{1,4})?")
_RUN_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}")
Tasks = Annotated[tuple[str, ...], Field(strict=False)]
Shots = Annotated[tuple[NonNegative, ...], Field(strict=False), MinLen(1)]
ShotsOf = dict[str, Shots]
Share = Annotated[float, Gt(0), Le(1)]
ARM = "arm"
"""The group; a configuration has no field of that name, only what its files choose."""
CHOSEN = ("pretokenizer", "tokenizer", "encoder")
"""The groups that it chooses in."""
AS_ARMS = "one begins with '# @package _global_' and overrides tokenizer and encoder, as conf/arm/bpe.yaml does"
DOC = "A tokenizer with the encoder that belongs to it, by one word: -m arm=bpe,unigram is one factor with two values."


def identity(default: Any = dataclasses.MISSING, *, doc: str) -> Any:
    """A field that changes what is computed. `doc` is one sentence: meaning, unit, paper's value."""
    return dataclasses.field(default=default, metadata={"role": IDENTITY, "doc": doc})


def execution(default: Any = dataclasses.MISSING, *, doc: str) -> Any:
    """A field that changes only how or where something is computed."""
    return dataclasses.field(default=default, metadata={"role": EXECUTION, "doc": doc})


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(identity, execution))
def config_class(cls: type[T]) -> type[T]:
    """Make `cls` a frozen, keyword-only dataclass and check that every field declares its role."""
    made = dataclasses.dataclass(frozen=True, kw_only=True)(cls)
    for field in dataclasses.fields(made):  # type: ignore[arg-type]
        if field.metadata.get("role") not in (IDENTITY, EXECUTION):
            raise TypeError(f"{cls.__name__}.{field.name} must be declared with identity(...) or execution(...)")
    return made


def proper_path(value: str) -> str:
    """`value` if a file can be called so; ValueError otherwise."""
    _check_characters(value)
    long = [part for part in value.split("/") if len(part.encode()) > LONGEST_PART]
    if long:
        raise ValueError(f"{long[0][:20]!r}... is {len(long[0].encode())} bytes long; a file's name has at most 255")
    try:
        Path(value).expanduser()
    except RuntimeError as error:
        raise ValueError(f"{value!r} begins with the home of nobody here ({error})") from error
    return value


def _check_characters(value: str) -> None:
    if not value.strip():
        raise ValueError("is empty")
    unfit = next((character for character in value if unicodedata.category(character) in ("Cc", "Cs")), None)
    if unfit is not None:
        raise ValueError(f"has the character {unfit!r}, which no name may have")


PathText = Annotated[str, AfterValidator(proper_path)]
Paths = Annotated[tuple[PathText, ...], Field(strict=False), MinLen(1)]


def proper_name(value: str) -> str:
    """`value` if it can be the name of an experiment; ValueError otherwise."""
    _check_characters(value)
    if set(value) <= {".", " "}:
        raise ValueError(f"{value!r} has no letter and no digit")
    if len(value.encode()) > LONGEST_NAME:
        raise ValueError(f"{value[:20]!r}... is {len(value.encode())} bytes long; a name has at most {LONGEST_NAME}")
    return value


Name = Annotated[str, AfterValidator(proper_name)]


def proper_device(value: str) -> str:
    """`value` if a device can be called so, whether it is there or not; ValueError otherwise."""
    if not _DEVICE.fullmatch(value):
        raise ValueError(f"{value!r} is no device; known: auto, cpu, cuda, and cuda:N for one of several")
    return value


Device = Annotated[str, AfterValidator(proper_device)]


def proper_run_id(value: str) -> str:
    """`value` if a run can be called so; ValueError otherwise."""
    if not _RUN_ID.fullmatch(value):
        shown = f"{value[:40]!r}{'...' if len(value) > 40 else ''}"
        raise ValueError(f"{shown} is no run id; one has letters, digits, '.', '_', '-', such as 0123456789abcdef")
    return value


RunId = Annotated[str, AfterValidator(proper_run_id)]


def with_chosen(factors: Sequence[str]) -> list[str]:
    """Factors, and the groups that arms stand for."""
    return [*factors, *(CHOSEN if ARM in factors else ())]
