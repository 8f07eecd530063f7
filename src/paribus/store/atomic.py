"""Files and directories that appear whole or not at all."""

import json
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Where to write the file or directory that becomes `path` in one step, on the disk, when the block ends.

    A kill or an error leaves what was there; a directory replaces nothing but an empty one.
    """
    aside = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        yield aside
        if aside.is_dir():
            sync_tree(aside)
        else:
            sync_entry(aside)
        aside.replace(path)
    except BaseException:
        _remove(aside)
        raise


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


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
    """Rename `source` to `target` in one step; False (and `source` stays) when `target` is there already."""
    sync_tree(source)
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        source.rename(target)
    except OSError:
        if target.is_dir():
            return False
        raise
    sync_entry(target.parent)
    return True


def sync_entry(path: Path) -> None:
    """Flush a file, or the entries of a directory, so that a rename in it survives a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
