"""Digests of files outside the output root, remembered so that asking again costs one `stat` a file."""

import hashlib
import json
import os
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from paribus.errors import DataError
from paribus.store.digest import SETTLED_NANOSECONDS, State, sha256, state_of


@dataclass(frozen=True)
class FileDigests:
    """SHA-256 of files, remembered in `directory` by path and state."""

    directory: Path
    states: dict[str, State] = field(default_factory=dict)
    """State of each file that was asked for, by absolute path."""

    def of(self, path: Path) -> str:
        """SHA-256 of a file in hexadecimal; DataError where the file changes meanwhile."""
        path = path.absolute()
        entry = self.directory / f"{hashlib.sha256(os.fsencode(path)).hexdigest()}.json"
        state = state_of(path.stat())
        self.states[os.fspath(path)] = state
        remembered = _remembered(entry, state)
        if remembered is not None:
            return remembered
        digest = sha256(path)
        if state_of(path.stat()) != state:
            raise DataError(f"{path}: changed while it was read; wait until it is complete")
        if time.time_ns() - path.stat().st_mtime_ns > SETTLED_NANOSECONDS:
            _remember(entry, {"path": os.fspath(path), "state": state, "sha256": digest})
        return digest


def was_written(before: State, now: State) -> bool:
    """Whether other contents may have been in a file between two states, also if they are gone again.

    Where another mode, owner or number of names explains the time of the last change, nothing was written.
    """
    (*contents, changed, inode), attributes = before[:4], before[4:]
    (*later, changed_later, inode_later), attributes_later = now[:4], now[4:]
    if [*contents, inode] != [*later, inode_later]:
        return True
    return changed != changed_later and attributes == attributes_later


def is_writable(directory: Path) -> bool:
    """Whether a directory may be written, or made; below a root that is read only nothing is remembered."""
    existing = next(path for path in (directory, *directory.absolute().parents) if path.is_dir())
    return os.access(existing, os.W_OK)


def _remembered(entry: Path, state: State) -> str | None:
    try:
        content = json.loads(entry.read_text(encoding="utf-8"))
        return str(content["sha256"]) if content["state"] == state else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _remember(entry: Path, content: dict[str, object]) -> None:
    if not is_writable(entry.parent):
        return
    aside = entry.with_suffix(f".{uuid.uuid4().hex}.tmp")
    with suppress(OSError):  # what cannot be remembered is found again
        entry.parent.mkdir(parents=True, exist_ok=True)
        aside.write_text(json.dumps(content), encoding="utf-8", errors="backslashreplace")
        aside.replace(entry)
