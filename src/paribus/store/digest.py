"""The digest of a file, and when a digest may be remembered."""

import hashlib
import os
from pathlib import Path

SETTLED_NANOSECONDS = 2 * 10**9
"""A file younger than this when it was read may have been written again under the same time stamp."""

State = list[int]
"""Size in bytes, times of the last write and of the last change in nanoseconds, inode; mode, owner, group, number of
names. What copies or unpacks a file can set the first time back, and nothing the second."""


def state_of(status: os.stat_result) -> State:
    """What tells that a file was written to or replaced."""
    return [
        *(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino),
        *(status.st_mode, status.st_uid, status.st_gid, status.st_nlink),
    ]


def sha256(path: Path) -> str:
    """SHA-256 of a file's contents, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
