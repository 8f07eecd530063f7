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
from paribus.store.digest import SETTLED_NANOSECONDS, sha256

State = list[int]
"""Size in bytes, time of the last write in nanoseconds and inode; then mode, owner, group and number of names; then the
time of the last change of any of these or of the contents."""
_CONTENTS, _ATTRIBUTES = slice(0, 3), slice(3, 7)


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
        state = state_of(path)
        self.states[os.fspath(path)] = state
        remembered = _remembered(entry, state)
        if remembered is not None:
            return remembered
        digest = sha256(path)
        if state_of(path) != state:
            raise DataError(f"{path}: changed while it was read; wait until it is complete")
        if time.time_ns() - path.stat().st_mtime_ns > SETTLED_NANOSECONDS:
            _remember(entry, {"path": os.fspath(path), "state": state, "sha256": digest})
        return digest


def state_of(path: Path) -> State:
    """What tells that a file was written to or replaced."""
    found = path.stat()
    attributes = [found.st_mode, found.st_uid, found.st_gid, found.st_nlink]
    return [found.st_size, found.st_mtime_ns, found.st_ino, *attributes, found.st_ctime_ns]


def was_written(before: State, now: State) -> bool:
    """Whether other contents may have been in a file between two states, also if they are gone again.

    What copies or unpacks a file can set its time of writing back, but not that of its last change. Where another mode,
    owner or number of names explains that one, nothing was written.
    """
    return before[_CONTENTS] != now[_CONTENTS] or (before != now and before[_ATTRIBUTES] == now[_ATTRIBUTES])


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
