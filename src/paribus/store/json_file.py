"""JSON files that somebody else wrote: another process, another version, another library."""

import json
from pathlib import Path
from typing import Any

from paribus.errors import DataError


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file; DataError naming the file where there is none."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: missing or no JSON ({error})") from error
    if not isinstance(content, dict):
        raise DataError(f"{path}: not a JSON object")
    return content


def read_object_if_any(path: Path) -> dict[str, Any]:
    """The object in `path`; empty where the file is absent or is no JSON object."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
