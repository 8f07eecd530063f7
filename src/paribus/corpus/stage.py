"""The stage `corpus`."""

import platform
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from paribus.config.groups.corpus import CorpusConfig, FilesCorpus, HuggingFaceCorpus, ParallelCorpus, PydocsCorpus
from paribus.config.units import format_number, format_size
from paribus.corpus.paths import data_files, local_directory, require_revision, resolve, sides, versions
from paribus.stage import JSON, ExternalFiles, Stage, always, fields, late
from paribus.store.files import FileDigests


def _facts(result: Mapping[str, Any]) -> list[str]:
    train, heldout = result["train"], result["heldout"]
    skipped, moved = sum(result["skipped"].values()), result["moved"]["documents"]
    return [
        f"{format_number(train['documents'])} documents, {format_size(train['bytes'])}",
        f"{format_number(heldout['documents'])} held out",
        *([f"{format_number(skipped)} skipped"] if skipped else []),
        *([f"{format_number(moved)} near copies moved to training"] if moved else []),
    ]


# What the documents of a corpus are, told from outside: enters the key of the corpus before anything is read.
#
# A package is known by its version, a hub data set by its commit, a file by its name and the SHA-256 of its bytes.
def fingerprint(config: CorpusConfig, digests: FileDigests) -> dict[str, JSON]:
    """Identity of the contents that `config` points at.

    DataError naming every file that is missing or empty, ConfigurationError naming every package that is missing.
    """
    match config:
        case PydocsCorpus():
            # The grammar of Python's minor version decides which files parse.
            python = ".".join(platform.python_version_tuple()[:2])
            return {"packages": dict(versions(config.packages)), "python": python}
        case FilesCorpus():
            files = resolve(config.paths, skips=config.on_invalid == "skip")
            return {"files": _described(((path.name, path) for path in files), digests)}
        case HuggingFaceCorpus():
            return _data_set(config, digests)
        case ParallelCorpus():
            both = zip(("source", "target"), sides(config), strict=True)
            return {side: _described(((path.name, path) for path in paths), digests) for side, paths in both}


def _data_set(config: HuggingFaceCorpus, digests: FileDigests) -> dict[str, JSON]:
    directory = local_directory(config.name)
    if directory is None:
        return {"name": config.name, "revision": require_revision(config)}
    files = data_files(directory)
    return {"files": _described(((path.relative_to(directory).as_posix(), path) for path in files), digests)}


def _described(files: Iterable[tuple[str, Path]], digests: FileDigests) -> list[JSON]:
    return [[name, path.stat().st_size, digests.of(path)] for name, path in files]


CORPUS = Stage(
    "corpus",
    code_version=3,
    inputs=always(),
    identity=fields("corpus"),
    build=late("paribus.corpus.build:build"),
    imports=("paribus.corpus.build",),
    online=lambda config: isinstance(config.corpus, HuggingFaceCorpus),
    outside=ExternalFiles(lambda config: config.corpus, fingerprint),
    facts=_facts,
)
