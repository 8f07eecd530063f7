"""The record of an artefact: what it is, the digest of every file beside it, and one of the record itself.

What of these files was removed on purpose, to free space, stands in a note beside the store.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paribus.store import atomic
from paribus.store.json_file import read_object_if_any

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


@dataclass(frozen=True)
class Pruned:
    """The files of an artefact that were removed on purpose, and are no damage."""

    files: frozenset[str] = frozenset()
    """Names that its record has; one that is still there is to be removed yet."""
    readable: bool = True
    """Whether stages may still read the artefact, which lacks nothing of what they need."""

    @classmethod
    def read(cls, path: Path) -> "Pruned":
        """What a note says; nothing where there is none."""
        note = read_object_if_any(path)
        names = note.get("files")
        return cls(frozenset(map(str, names)), note.get("readable") is True) if isinstance(names, list) else cls()

    def write(self, path: Path, more: Iterable[str], *, readable: bool) -> None:
        """Note that `more` files are to be removed too, before they are."""
        path.parent.mkdir(parents=True, exist_ok=True)
        files = sorted(self.files.union(more))
        atomic.write_json(path, {"files": files, "readable": self.readable and readable})
