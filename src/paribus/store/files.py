"""Files of the store and beside it, written in one step, read as JSON, and told apart by digests."""

import errno
import hashlib
import json
import os
import shutil
import stat
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paribus.errors import DataError

_OF_THE_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO)
PROBE = ".clock"
RUN_RECORD = "run.json"
"""File in the directory of a run: what it is and how it stands."""
MADE_OF = "artefacts.json"
"""File in the directory of a report without a run: the artefacts that it was made of."""
METRICS = "metrics.jsonl"
"""File in an artefact: the numbers that its stage reported, a line a step."""
SETTLED_NANOSECONDS = 2 * 10**9
"""A file younger than this when it was read may have been written again under the same time stamp."""
State = list[int]
"""Size in bytes, times of the last write and of the last change in nanoseconds, inode; mode, owner, group, number of
names. What copies or unpacks a file can set the first time back, and nothing the second."""


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Add the name `path` to an error of the disk without one, such as an error of writing to an open file.

    Others are left as they are: libraries raise OSError with a text alone, which a name would hide.
    """
    try:
        yield
    except OSError as error:
        if error.errno in _OF_THE_DISK:
            error.filename = error.filename or str(path)
        raise


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a path to write, as a file or directory, that becomes `path` in one step, on the disk, at the end.

    A kill or an error leaves `path` as it was; a directory replaces nothing but an empty one.
    """
    aside = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        with naming(path):
            yield aside
            if aside.is_dir():
                sync_tree(aside)
            else:
                sync_entry(aside)
            aside.replace(path)
            sync_entry(path.parent)
    except BaseException:
        if aside.is_dir():
            shutil.rmtree(aside, ignore_errors=True)
        else:
            aside.unlink(missing_ok=True)
        raise


def write_bytes(path: Path, content: bytes) -> None:
    """Replace `path` by `content` in one step; a kill leaves the old file or the new one."""
    with replacing(path) as aside:
        aside.write_bytes(content)


def write_text(path: Path, text: str) -> None:
    """Replace `path` by `text` (UTF-8) as `write_bytes` does."""
    write_bytes(path, text.encode())


def write_json(path: Path, value: Any) -> None:
    """Replace `path` by a JSON document in one step."""
    write_text(path, json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n")


def sync_tree(directory: Path) -> None:
    """Flush every file and directory below `directory` to the disk."""
    for root, _, names in os.walk(directory):
        for path in [*(Path(root) / name for name in names), Path(root)]:
            sync_entry(path)


def publish_directory(source: Path, target: Path) -> bool:
    """Flush `source` to the disk and rename it to `target`, as `rename_directory` does."""
    sync_tree(source)
    return rename_directory(source, target)


def rename_directory(source: Path, target: Path) -> bool:
    """Rename `source`, which is on the disk, to `target` in one step; False, and it stays, when `target` is there."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        source.rename(target)
    except OSError:
        if target.is_dir():
            return False
        raise
    sync_entry(target.parent)
    return True


def open_to_umask(directory: Path) -> None:
    """Give every file and directory below `directory` the access that this process's new files have.

    Some libraries write files that only their owner may read. The mode of `directory` itself, which this process made,
    says what its umask leaves.
    """
    access = stat.S_IMODE(directory.stat().st_mode) & 0o777
    for root, directories, names in os.walk(directory):
        for name in names:
            _add_access(Path(root) / name, access & 0o666)
        for name in directories:
            _add_access(Path(root) / name, access)


def _add_access(path: Path, access: int) -> None:
    mode = stat.S_IMODE(path.stat(follow_symlinks=False).st_mode)
    if mode | access != mode and not path.is_symlink():
        with suppress(PermissionError):  # a file system that has no modes
            path.chmod(mode | access)


def sync_entry(path: Path) -> None:
    """Flush a file, or the entries of a directory, so that a rename in it survives a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def file_time_ns(directory: Path) -> int:
    """Nanoseconds since 1970 that a file written in `directory` at this moment is stamped with."""
    probe = directory / PROBE
    probe.touch()
    return probe.stat().st_mtime_ns


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


def state_of(status: os.stat_result) -> State:
    """State of a file, which differs once the file was written to or replaced."""
    return [
        *(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino),
        *(status.st_mode, status.st_uid, status.st_gid, status.st_nlink),
    ]


def sha256(path: Path) -> str:
    """SHA-256 of a file's contents, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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
    """True if other contents may have been in a file between two states, also if they are gone again.

    Where another mode, owner or number of names explains the time of the last change, nothing was written.
    """
    if [*before[:2], before[3]] != [*now[:2], now[3]]:  # size, time of the last write, inode
        return True
    return before[2] != now[2] and before[4:] == now[4:]


def is_writable(directory: Path) -> bool:
    """True if a directory may be written, or made; below a root that is read only nothing is remembered."""
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
    with suppress(OSError):  # what cannot be remembered is hashed again
        entry.parent.mkdir(parents=True, exist_ok=True)
        aside.write_text(json.dumps(content), encoding="utf-8", errors="backslashreplace")
        aside.replace(entry)
