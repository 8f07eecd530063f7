"""What the documents of a corpus are, told from outside: enters the key of the corpus before anything is read.

A package is known by its version, a hub data set by its commit, a file by its name and the SHA-256 of its bytes.
"""

import platform
from collections.abc import Iterable
from pathlib import Path

from paribus.config.groups.corpus import CorpusConfig, FilesCorpus, HuggingFaceCorpus, ParallelCorpus, PydocsCorpus
from paribus.corpus.sources.aligned import sides
from paribus.corpus.sources.dataset_names import data_files, local_directory, require_revision
from paribus.corpus.sources.distributions import versions
from paribus.corpus.sources.paths import resolve
from paribus.stage import JSON
from paribus.store.files import FileDigests


def fingerprint(config: CorpusConfig, digests: FileDigests) -> dict[str, JSON]:
    """Identity of the contents that `config` points at.

    DataError naming every file that is missing or empty, ConfigurationError naming every package that is missing.
    """
    match config:
        case PydocsCorpus():
            return {"packages": dict(versions(config.packages)), "python": _python()}
        case FilesCorpus():
            files = resolve(config.paths, skips=config.on_invalid == "skip")
            return {"files": _described(((path.name, path) for path in files), digests)}
        case HuggingFaceCorpus():
            return _data_set(config, digests)
        case ParallelCorpus():
            both = zip(("source", "target"), sides(config), strict=True)
            return {side: _described(((path.name, path) for path in paths), digests) for side, paths in both}


def _python() -> str:
    """Minor version of Python: its grammar decides which files parse."""
    return ".".join(platform.python_version_tuple()[:2])


def _data_set(config: HuggingFaceCorpus, digests: FileDigests) -> dict[str, JSON]:
    directory = local_directory(config.name)
    if directory is None:
        return {"name": config.name, "revision": require_revision(config)}
    files = data_files(directory)
    return {"files": _described(((path.relative_to(directory).as_posix(), path) for path in files), digests)}


def _described(files: Iterable[tuple[str, Path]], digests: FileDigests) -> list[JSON]:
    return [[name, path.stat().st_size, digests.of(path)] for name, path in files]
