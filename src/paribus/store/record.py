"""The record of an artefact: what it is, the digest of every file beside it, and one of the record itself."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paribus.store import atomic

RECORD = "record.json"
SEAL = "sha256"
"""Field with the SHA-256 of the canonical JSON of all others."""


def write_record(directory: Path, record: Mapping[str, Any]) -> None:
    """Write and seal the record of the files in `directory`; `record` is JSON-compatible."""
    content = json.loads(json.dumps(dict(record), allow_nan=False))
    atomic.write_json(directory / RECORD, content | {SEAL: _seal(content)})


def read_record(directory: Path) -> dict[str, Any]:
    """The record of the artefact in `directory`; ValueError saying what is wrong with it."""
    path = directory / RECORD
    if not path.is_file():
        raise ValueError(f"has no {RECORD}")
    try:
        content = json.loads(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{RECORD} is torn ({error})") from error
    if not isinstance(content, dict) or content.pop(SEAL, None) != _seal(content):
        raise ValueError(f"{RECORD} does not have the digest of its own contents: damaged, or of another version")
    return content


def _seal(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
