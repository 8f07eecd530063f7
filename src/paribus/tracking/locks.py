"""Locks between processes."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(path: Path, patience: float) -> Iterator[None]:
    """Hold the lock file `path`; TimeoutError when another process still holds it after `patience` seconds."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        deadline = time.monotonic() + patience
        while not _try_lock(descriptor):
            if time.monotonic() >= deadline:
                raise TimeoutError(f"another process has held {path} for {patience:g} s")
            time.sleep(0.05)
        yield
    finally:
        os.close(descriptor)


def is_locked(path: Path) -> bool:
    """Whether some process holds the lock file `path`."""
    try:
        with locked(path, 0):
            return False
    except TimeoutError:
        return True


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
