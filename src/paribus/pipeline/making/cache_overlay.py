"""Digests of source files for commands that write nothing below the output root."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def overlay(cache: Path) -> Iterator[Path]:
    """A directory that has what `cache` remembers and takes what is found out until the block ends; `cache` stays.

    A writer replaces an entry by a rename, which leaves what a link leads to as it is.
    """
    with tempfile.TemporaryDirectory(prefix="paribus-") as aside:
        for entry in cache.glob("*.*"):
            if entry.is_file():
                (Path(aside) / entry.name).symlink_to(entry.resolve())
        yield Path(aside)
