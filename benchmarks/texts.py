"""The documents that a benchmark reads."""

from collections.abc import Iterator
from pathlib import Path

from paribus.config.groups.corpus import FilesCorpus, PydocsCorpus
from paribus.corpus.datasets import PydocsSource
from paribus.corpus.files import FilesSource, Source, SourceDocument
from paribus.engine.local import LocalEngine


def documents(path: Path | None) -> Iterator[str]:
    """The documents of a file that `corpus=files` reads, or docstrings of installed packages."""
    engine = LocalEngine()
    source: Source = PydocsSource(PydocsCorpus(), engine)
    if path is not None:
        source = FilesSource(FilesCorpus(paths=(str(path),)), engine, path.parent)
    return (item.text for item in source.items() if isinstance(item, SourceDocument))
