"""Names and paths that people give, judged before any file is named by them."""

import re
import unicodedata
from pathlib import Path

LONGEST_PART = 255
"""Bytes of a file's name, the limit of Linux' file systems."""
LONGEST_NAME = 200
_DEVICE = re.compile(r"auto|cpu|cuda(:[0-9]{1,4})?")
_RUN_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}")


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


def proper_name(value: str) -> str:
    """`value` if it can be the name of an experiment; ValueError otherwise."""
    _check_characters(value)
    if set(value) <= {".", " "}:
        raise ValueError(f"{value!r} has no letter and no digit")
    if len(value.encode()) > LONGEST_NAME:
        raise ValueError(f"{value[:20]!r}... is {len(value.encode())} bytes long; a name has at most {LONGEST_NAME}")
    return value


def proper_run_id(value: str) -> str:
    """`value` if a run can be called so; ValueError otherwise."""
    if not _RUN_ID.fullmatch(value):
        shown = f"{value[:40]!r}{'...' if len(value) > 40 else ''}"
        raise ValueError(f"{shown} is no run id; one has letters, digits, '.', '_', '-', such as 0123456789abcdef")
    return value


def proper_device(value: str) -> str:
    """`value` if a device can be called so, whether it is there or not; ValueError otherwise."""
    if not _DEVICE.fullmatch(value):
        raise ValueError(f"{value!r} is no device; known: auto, cpu, cuda, and cuda:N for one of several")
    return value


def _check_characters(value: str) -> None:
    if not value.strip():
        raise ValueError("is empty")
    unfit = next((character for character in value if unicodedata.category(character) in ("Cc", "Cs")), None)
    if unfit is not None:
        raise ValueError(f"has the character {unfit!r}, which no name may have")
