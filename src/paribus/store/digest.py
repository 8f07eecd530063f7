"""The digest of a file, and when a digest may be remembered."""

import hashlib
from pathlib import Path

SETTLED_NANOSECONDS = 2 * 10**9
"""A file younger than this when it was read may have been written again under the same time stamp."""


def sha256(path: Path) -> str:
    """SHA-256 of a file's contents, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
