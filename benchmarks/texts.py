"""The documents that a benchmark reads."""

from collections.abc import Iterator
from pathlib import Path

from paribus.config.groups.corpus import FilesCorpus, PydocsCorpus
from paribus.corpus.datasets import PydocsSource
from paribus.corpus.files import FilesSource, Source, SourceDocument
from paribus.engine.local import LocalEngine


def documents(path: Path | None, *, lines: bool = False) -> Iterator[str]:
    """The documents, or `lines`, of a file that `corpus=files` reads, or docstrings of installed packages."""
    engine = LocalEngine()
    source: Source = PydocsSource(PydocsCorpus(), engine)
    if path is not None:
        config = FilesCorpus(paths=(str(path),), txt_document="line" if lines else "file")
        source = FilesSource(config, engine, path.parent)
    return (item.text for item in source.items() if isinstance(item, SourceDocument))
