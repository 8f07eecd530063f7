"""Files and directories that appear whole or not at all."""

import json
import os
import uuid
from pathlib import Path
from typing import Any


def write_bytes(path: Path, content: bytes) -> None:
    """Replace `path` by `content` in one step; a kill leaves the old file or the new one."""
    aside = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        with aside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise


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
            handle = os.open(path, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


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
    sync_tree_entry(target.parent)
    return True


def sync_tree_entry(directory: Path) -> None:
    """Flush one directory's entries, so that a rename in it survives a power cut."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
