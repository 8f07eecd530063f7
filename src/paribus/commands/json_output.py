"""What a verb says with --json: one document on standard output, and nothing else there."""

import json
import math
import sys
from collections.abc import Mapping
from typing import Any

JSON = "--json"


def print_json(document: Mapping[str, Any]) -> None:
    """Print a document of plain data; what is no finite number is null."""
    json.dump(_finite(document), sys.stdout, indent=2, allow_nan=False)
    sys.stdout.write("\n")
    sys.stdout.flush()


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _finite(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
