"""Which formats and compressions there are, told apart by a file's suffixes."""

from dataclasses import dataclass
from pathlib import Path

FORMATS = ("jsonl", "parquet", "txt")
_ALSO = {"json": "jsonl"}
"""Other suffixes of a format: JSON lines are called so by CCNet."""
COMPRESSIONS = ("gz", "zst", "bz2")
_SUFFIXES = ", ".join(f".{name}" for name in (*FORMATS, *_ALSO))
KNOWN = f"{_SUFFIXES}, plain or with {', '.join('.' + name for name in COMPRESSIONS)}"


@dataclass(frozen=True, slots=True)
class Format:
    """A file's format and its compression (None for plain)."""

    name: str
    compression: str | None


def format_of(path: Path) -> Format | None:
    """The format that the suffixes of `path` name, or None where they name no known one."""
    *rest, last = path.name.lower().split(".")
    compression = compression_of(path)
    suffix = rest[-1] if compression and rest else last
    name = _ALSO.get(suffix, suffix)
    return Format(name, compression) if name in FORMATS and rest else None


def compression_of(path: Path) -> str | None:
    """The compression that the last suffix of `path` names, None for plain."""
    last = path.name.lower().rpartition(".")[2]
    return last if last in COMPRESSIONS else None
