"""Sizes, counts and times as people write them: `388GiB`, `100B` tokens, `1.5M`, `5 h 10 min`."""

import math
import re
from typing import Annotated

from pydantic import BeforeValidator

_BYTES = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_BYTES |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
_COUNTS = {"": 1, "K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}
LEAST_SAMPLE = 1000
"""Bytes of the smallest sample that is a size; below it, a number is taken for a slip."""
_NUMBER = re.compile(r"\s*(-?[0-9][0-9_]*(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)\s*([A-Za-z]*)\s*")


def parse_size(value: object) -> int:
    """Bytes from `388GiB` (powers of 1,024), `388GB` (powers of 1,000) or a plain number; ValueError otherwise."""
    return _parse(value, _BYTES, "388GiB")


def parse_count(value: object) -> int:
    """A count from `100B`, `1.5M`, `32K` or a plain number; ValueError otherwise."""
    return _parse(value, _COUNTS, "100B")


def _parse(value: object, units: dict[str, int], example: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"{value!r} is not a number with a unit such as {example}")
    match = _NUMBER.fullmatch(str(value))
    if match is None or match[2].upper() not in units:
        known = ", ".join(unit for unit in units if unit)
        raise ValueError(f"{value!r} is not a number with a unit such as {example} (units: {known})")
    number, unit = match[1].replace("_", ""), units[match[2].upper()]
    if float(number) <= 0:
        raise ValueError(f"should be above zero, not {value!r}")
    try:
        amount = int(number) * unit if number.isdigit() else round(float(number) * unit)
    except OverflowError:
        raise ValueError(f"{value!r} is too large to count") from None
    if amount < 1:
        raise ValueError(f"should be 1 or more, not {value!r}")
    return amount


def parse_sample(value: object) -> float | int:
    """A share between 0 and 1, or bytes as `parse_size` reads them, 1,000 at least; ValueError otherwise."""
    number = _number(value)
    if number is not None and not math.isfinite(number):
        raise ValueError(f"should be a finite number, not {value!r}")
    if number is not None and 0 < number < 1:
        return number
    if number is None or (number >= LEAST_SAMPLE and number == int(number)):
        size = parse_size(value)
        if size >= LEAST_SAMPLE:
            return size
    if number == 1:
        raise ValueError(f"{value!r} is no share below 1; null keeps everything, and 500MB is a size")
    raise ValueError(f"{value!r} is neither a share between 0 and 1 nor a size such as 500MB; null keeps all")


def _number(value: object) -> float | None:
    """A number, also as text; None for anything with a unit."""
    if isinstance(value, bool):
        return None
    try:
        return float(value)  # type: ignore[arg-type]  # what it cannot take it refuses
    except (TypeError, ValueError):
        return None


def format_size(size: float) -> str:
    """Bytes for people: `388.0 GiB`."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024 or unit == "TiB":
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    raise AssertionError("the loop returns")


def rounded_up_size(size: int) -> str:
    """Bytes as they are given in an override, rounded up to three digits: `121KB`."""
    step = 10 ** max(0, len(str(size)) - 3)
    rounded = -(-size // step) * step
    unit = next((unit for unit in ("TB", "GB", "MB", "KB") if rounded >= _BYTES[unit]), "")
    return f"{rounded / _BYTES[unit]:g}{unit}"


def format_count(count: float) -> str:
    """A count for people: `468.2M`."""
    for unit, scale in (("T", 1e12), ("B", 1e9), ("M", 1e6), ("K", 1e3)):
        if count >= scale:
            return f"{count / scale:.1f}{unit}"
    return f"{count:.0f}"


def format_number(count: float) -> str:
    """A count for people, to the last one below a million: `12,345`, `1.2M`."""
    return format_count(count) if count >= 1e6 else f"{count:,.0f}"


def format_hours(hours: float) -> str:
    """Hours for people: `1,234`, `2.5`, `0.012`."""
    return f"{hours:,.0f}" if hours >= 10 else f"{hours:.2g}"


Size = Annotated[int, BeforeValidator(parse_size)]
Count = Annotated[int, BeforeValidator(parse_count)]
ShareOrSize = Annotated[float | int, BeforeValidator(parse_sample)]


def format_duration(seconds: float) -> str:
    """Seconds for people: `12 s`, `3 min 20 s`, `5 h 10 min`."""
    if seconds < 60:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def format_age(seconds: float) -> str:
    """Age in one unit: `12 s`, `3 min`, `5 h`, `8 d`."""
    for unit, length, most in (("s", 1, 60), ("min", 60, 3600), ("h", 3600, 86_400)):
        if seconds < most:
            return f"{max(0, int(seconds / length))} {unit}"
    return f"{int(seconds / 86_400)} d"
