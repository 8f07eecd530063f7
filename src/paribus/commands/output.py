"""Output of verbs: documents for --json, and directories of the output root for tables and pictures."""

import json
import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from paribus.pipeline.root import OutputRoot


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


TOKENS = "tokens"
"""Directory of the output root for reports and logs."""


def report_directory(root: "OutputRoot", subject: object) -> Path:
    """The directory of the report on `subject`, plain data that tells reports apart."""
    from paribus.config.identity import digest  # loads pydantic, which `--help` does without

    return root.path / TOKENS / digest(subject)[:16]
