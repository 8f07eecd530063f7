"""Files and directories that appear whole or not at all."""

import errno
import json
import os
import shutil
import stat
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

_OF_THE_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Let an error of the disk that names no file, as those of writing to an open one, name `path`.

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
    """Where to write the file or directory that becomes `path` in one step, on the disk, when the block ends.

    A kill or an error leaves what was there; a directory replaces nothing but an empty one.
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
            _open(Path(root) / name, access & 0o666)
        for name in directories:
            _open(Path(root) / name, access)


def _open(path: Path, access: int) -> None:
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
