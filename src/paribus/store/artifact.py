"""The store: one immutable directory an artefact, found by its key.

An artefact exists when its directory and the record inside exist; both appear by one rename. Directories below
`partial/` belong to the holder of the artefact's claim.
"""

import hashlib
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paribus.errors import InfrastructureError
from paribus.store import atomic
from paribus.store.claim import Claim, acquire, exclusive

RECORD = "record.json"


@dataclass(frozen=True)
class Artifact:
    """A published artefact."""

    stage: str
    key: str
    path: Path

    def record(self) -> dict[str, Any]:
        """Identity, inputs, file digests, provenance and result."""
        loaded = json.loads((self.path / RECORD).read_text(encoding="utf-8"))
        if not isinstance(loaded, dict):
            raise InfrastructureError(f"{self.path / RECORD} is not an object; `paribus doctor` repairs the store")
        return loaded


class Store:
    """Artefacts below `root`: `<stage>/<key>/`, claims and unfinished work beside them."""

    def __init__(self, root: Path, lease_seconds: float = 30.0) -> None:
        self.root, self.lease_seconds = root, lease_seconds

    def path(self, stage: str, key: str) -> Path:
        """Where the artefact is, or would be."""
        return self.root / stage / key

    def find(self, stage: str, key: str) -> Artifact | None:
        """The artefact, or None when it does not exist."""
        path = self.path(stage, key)
        return Artifact(stage, key, path) if (path / RECORD).is_file() else None

    def claim(self, stage: str, key: str) -> Claim | None:
        """The right to make the artefact, or None while a living process has it."""
        return acquire(self.claim_path(stage, key), self.lease_seconds)

    def claim_path(self, stage: str, key: str) -> Path:
        """The claim file of an artefact."""
        return self.root / "claims" / f"{stage}-{key}"

    def work(self, stage: str, key: str) -> Path:
        """Scratch directory of the artefact that survives kills; only the claim's holder may touch it."""
        path = self.root / "partial" / f"{stage}-{key}" / "work"
        path.mkdir(parents=True, exist_ok=True)
        return path

    def empty_output(self, stage: str, key: str) -> Path:
        """An empty directory to fill; leftovers of a killed attempt are removed."""
        path = self.root / "partial" / f"{stage}-{key}" / "output"
        if path.exists():
            shutil.rmtree(path)
        path.mkdir(parents=True)
        return path

    def discard_output(self, stage: str, key: str) -> None:
        """Remove what a failed attempt wrote; resumable work stays."""
        partial = self.root / "partial" / f"{stage}-{key}"
        shutil.rmtree(partial / "output", ignore_errors=True)
        for directory in (partial / "work", partial):
            if directory.is_dir() and not any(directory.iterdir()):
                directory.rmdir()

    def publish(self, held: Claim, stage: str, key: str, record: dict[str, Any]) -> Artifact:
        """Make the filled output directory the artefact; ClaimLostError when the claim was taken over."""
        partial = self.root / "partial" / f"{stage}-{key}"
        output = partial / "output"
        atomic.write_json(output / RECORD, record | {"files": file_digests(output)})
        with exclusive(held.path.parent):
            held.check()
            atomic.publish_directory(output, self.path(stage, key))
        shutil.rmtree(partial)
        return Artifact(stage, key, self.path(stage, key))


def file_digests(directory: Path) -> dict[str, dict[str, Any]]:
    """Relative path -> {bytes, sha256} of every file below `directory` except the record."""
    paths = sorted(path for path in directory.rglob("*") if path.is_file() and path.name != RECORD)
    return {
        path.relative_to(directory).as_posix(): {"bytes": path.stat().st_size, "sha256": sha256(path)} for path in paths
    }


def sha256(path: Path) -> str:
    """SHA-256 of a file's contents, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
