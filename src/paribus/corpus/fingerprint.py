"""What the documents of a corpus are, told from outside: enters the key of the corpus before anything is read.

A package is known by its version, a hub data set by its commit, a file by the SHA-256 of its bytes. Digests of files
are remembered by path, size and time of change, so asking again costs one `stat` a file.
"""

import hashlib
import json
import os
import platform
import time
import uuid
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from paribus.config.groups.corpus import CorpusConfig, FilesCorpus, HuggingFaceCorpus, ParallelCorpus, PydocsCorpus
from paribus.corpus.sources.aligned import sides
from paribus.corpus.sources.dataset_names import data_files, local_directory, require_revision
from paribus.corpus.sources.distributions import versions
from paribus.corpus.sources.paths import resolve
from paribus.errors import DataError
from paribus.pipeline.context import JSON
from paribus.store.digest import SETTLED_NANOSECONDS, sha256


def fingerprint(config: CorpusConfig, cache: Path) -> dict[str, JSON]:
    """Identity of the contents that `config` points at; `cache` is a directory that remembers digests of files.

    DataError naming every file that is missing or empty, ConfigurationError naming every package that is missing.
    """
    match config:
        case PydocsCorpus():
            return {"packages": dict(versions(config.packages)), "python": _python()}
        case FilesCorpus():
            return {"files": _described(((path.name, path) for path in resolve(config.paths)), cache)}
        case HuggingFaceCorpus():
            return _data_set(config, cache)
        case ParallelCorpus():
            files = zip(("source", "target"), sides(config), strict=True)
            return {side: _described(((path.name, path) for path in paths), cache) for side, paths in files}


def _python() -> str:
    """Minor version of Python: its grammar decides which files parse."""
    return ".".join(platform.python_version_tuple()[:2])


def _data_set(config: HuggingFaceCorpus, cache: Path) -> dict[str, JSON]:
    directory = local_directory(config.name)
    if directory is None:
        return {"name": config.name, "revision": require_revision(config)}
    files = data_files(directory)
    return {"files": _described(((path.relative_to(directory).as_posix(), path) for path in files), cache)}


def is_writable(directory: Path) -> bool:
    """Whether a directory may be written, or made; below a root that is read only nothing is remembered."""
    existing = next(path for path in (directory, *directory.absolute().parents) if path.is_dir())
    return os.access(existing, os.W_OK)


def _described(files: Iterable[tuple[str, Path]], cache: Path) -> list[JSON]:
    return [[name, path.stat().st_size, file_digest(path, cache)] for name, path in files]


def file_digest(path: Path, cache: Path) -> str:
    """SHA-256 of a file, remembered below the directory `cache`; DataError where the file changes meanwhile."""
    path = path.absolute()
    entry = cache / f"{hashlib.sha256(os.fsencode(path)).hexdigest()}.json"
    state = _state(path)
    remembered = _remembered(entry, state)
    if remembered is not None:
        return remembered
    digest = sha256(path)
    if _state(path) != state:
        raise DataError(f"{path}: changed while it was read; wait until it is complete")
    if time.time_ns() - path.stat().st_mtime_ns > SETTLED_NANOSECONDS:
        _remember(entry, {"path": os.fspath(path), "state": state, "sha256": digest})
    return digest


def _state(path: Path) -> list[JSON]:
    status = path.stat()
    return [status.st_size, status.st_mtime_ns]


def _remembered(entry: Path, state: list[JSON]) -> str | None:
    try:
        content = json.loads(entry.read_text(encoding="utf-8"))
        return str(content["sha256"]) if content["state"] == state else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _remember(entry: Path, content: dict[str, JSON]) -> None:
    if not is_writable(entry.parent):
        return
    aside = entry.with_suffix(f".{uuid.uuid4().hex}.tmp")
    with suppress(OSError):  # what cannot be remembered is found again
        entry.parent.mkdir(parents=True, exist_ok=True)
        aside.write_text(json.dumps(content), encoding="utf-8", errors="backslashreplace")
        aside.replace(entry)
